#include "execute/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "execute/kernel_cost.h"
#include "schedule/levels.h"

namespace plumbline::execute {
namespace {

using schedule::Bucket;

std::vector<std::string> classes_of(const std::vector<schedule::ModelSchedules>& models) {
  std::vector<std::string> classes;
  std::set<std::string> seen;
  for (const auto& model : models) {
    for (const Bucket& bucket : model.buckets) {
      for (const lower::Kernel& kernel : bucket.graph->kernels) {
        if (seen.insert(kernel.layer_class).second) classes.push_back(kernel.layer_class);
      }
    }
  }
  return classes;
}

Situation situation_of(const lower::Instance& instance, const schedule::Placement& placement,
                       const std::vector<bool>& pinned) {
  Situation situation;
  situation.kernel = instance.kernel.at();
  situation.again = instance.again;
  const auto off_chip = [&](const lower::BufferUse& use) {
    return static_cast<bool>(placement.buffers[static_cast<std::size_t>(use.buffer)].off_chip);
  };
  for (const lower::BufferUse& use : instance.reads) situation.reads_off_chip.push_back(off_chip(use));
  for (const lower::BufferUse& use : instance.writes) situation.writes_off_chip.push_back(off_chip(use));
  for (const lower::ParameterUse& use : instance.parameters) {
    situation.parameters_on_chip.push_back(schedule::on_chip_before(use, pinned));
  }
  return situation;
}

/// Instances that cost the same.
struct Group {
  Situation situation;
  const lower::Instance* first = nullptr;
  std::vector<std::int32_t> instances;
};

std::vector<Group> group_instances(const Bucket& bucket, const std::vector<bool>& pinned) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < bucket.graph->instances.size(); ++i) {
    const lower::Instance& instance = bucket.graph->instances[i];
    Situation situation = situation_of(instance, bucket.schedule->placement, pinned);
    auto found =
        std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.situation == situation; });
    if (found == groups.end()) found = groups.insert(groups.end(), {std::move(situation), &instance, {}});
    found->instances.push_back(static_cast<std::int32_t>(i));
  }
  return groups;
}

void add(Movement& sum, const Movement& part, std::int64_t times) {
  sum.off_array_weight += part.off_array_weight * times;
  sum.off_array_stationary += part.off_array_stationary * times;
  sum.off_array_activation += part.off_array_activation * times;
  sum.psum += part.psum * times;
  sum.off_chip_weight += part.off_chip_weight * times;
  sum.off_chip_activation += part.off_chip_activation * times;
}

void add(ClassCost& sum, const lower::Kernel& kernel, bool again, const SituationCost& part, std::int64_t times) {
  for (std::size_t c = 0; c < kCycleClasses; ++c) sum.cycles[c] += part.classes[c] * times;
  for (std::size_t p = 0; p < kEnergyPaths; ++p) sum.femtojoules[p] += part.femtojoules[p] * times;
  add(sum.movement, part.movement, times);
  const std::int64_t macs = kernel.macs();
  sum.macs += macs * times;
  if (!again) {
    sum.unique_weight_bytes += kernel.unique_weight_bytes * times;
    sum.unique_weight_elements += kernel.unique_weight_elements * times;
  }
  sum.weight_elements_in += part.weight_elements_in * times;
  if (kernel.unique_weight_elements > 0) sum.weight_macs += macs * times;
  sum.feeder_cycles += part.feeder_cycles * times;
  sum.pe.useful += part.pe.useful * times;
  sum.pe.padded += part.pe.padded * times;
  sum.pe.unmapped += part.pe.unmapped * times;
  sum.pe.idle += part.pe.idle * times;
}

/// Unique parameter bytes a batch uses, and those of them that are pinned.
void find_weight_bytes(const Bucket& bucket, const std::vector<bool>& pinned, BatchCost& batch) {
  std::vector<bool> seen;
  for (const lower::Instance& instance : bucket.graph->instances) {
    for (const lower::ParameterUse& use : instance.parameters) {
      if (use.tensor.at() >= seen.size()) seen.resize(use.tensor.at() + 1, false);
      if (seen[use.tensor.at()]) continue;
      seen[use.tensor.at()] = true;
      const std::int64_t bytes = std::min(use.bytes, use.stored);
      batch.weight_bytes_unique += bytes;
      if (!use.gathered && use.tensor.at() < pinned.size() && pinned[use.tensor.at()]) {
        batch.weight_bytes_resident += bytes;
      }
    }
  }
}

Result<BatchCost> cost_batch(const CostContext& context, const Bucket& bucket, const std::vector<bool>& pinned,
                             const std::vector<std::string>& classes) {
  BatchCost batch;
  batch.batch = bucket.batch;
  batch.sequence = bucket.sequence;
  batch.layers.resize(classes.size());
  for (std::size_t c = 0; c < classes.size(); ++c) batch.layers[c].layer_class = classes[c];
  for (const Group& group : group_instances(bucket, pinned)) {
    const std::size_t k = group.situation.kernel;
    const lower::Kernel& kernel = bucket.graph->kernels[k];
    const schedule::KernelSchedule& mapped = bucket.schedule->kernels[k];
    PL_TRY(const SituationCost cost, cost_kernel(context, kernel, mapped, *group.first, group.situation));
    const auto repeats = static_cast<std::int64_t>(group.instances.size());
    const auto layer = std::find(classes.begin(), classes.end(), kernel.layer_class) - classes.begin();
    add(batch.layers[static_cast<std::size_t>(layer)], kernel, group.situation.again, cost, repeats);
    for (std::size_t c = 0; c < kCycleClasses; ++c) batch.classes[c] += cost.classes[c] * repeats;
    KernelCost row;
    row.name = group.first->name;
    row.layer_class = kernel.layer_class;
    row.repeats = repeats;
    row.cycles = cost.cycles();
    row.classes = cost.classes;
    row.movement = cost.movement;
    row.mapping = mapped.text;
    row.kernel = k;
    row.instances = group.instances;
    row.weight_elements_in = cost.weight_elements_in;
    row.feeder_cycles = cost.feeder_cycles;
    row.pe = cost.pe;
    batch.kernels.push_back(std::move(row));
  }
  batch.classes[static_cast<std::size_t>(CycleClass::host)] +=
      host_cycles(context.accelerator.host.launch_per_batch, context.clock);
  for (const std::int64_t cycles : batch.classes) batch.cycles += cycles;
  for (const ClassCost& layer : batch.layers) {
    for (const std::int64_t part : layer.femtojoules) batch.femtojoules += part;
  }
  batch.duration = context.clock.duration_ns(Cycles(batch.cycles));
  find_weight_bytes(bucket, pinned, batch);
  return batch;
}

}  // namespace

Result<CostTable> build_cost_table(const std::vector<schedule::ModelSchedules>& models, const ingest::Buckets& shapes,
                                   const schedule::Residency& residency, const ingest::Accelerator& accelerator,
                                   Clock clock) {
  PL_TRY(const schedule::LevelRoles levels, schedule::find_levels(accelerator));
  PL_TRY(const Prices prices, find_prices(accelerator));
  const CostContext context{accelerator, levels, prices, clock};
  CostTable table;
  table.clock = clock;
  table.layer_classes = classes_of(models);
  table.batch_buckets = shapes.batch;
  table.sequence_buckets = shapes.sequence.empty() ? std::vector<std::int64_t>{0} : shapes.sequence;
  table.models = models.size();
  table.idle = accelerator.power.idle;
  table.active = accelerator.power.active;
  table.host = accelerator.host.power;
  const std::size_t sequences = table.sequence_buckets.size();
  PL_CHECK(residency.pinned.size() == models.size());
  for (std::size_t m = 0; m < models.size(); ++m) {
    const auto& buckets = models[m].buckets;
    // A model without a sequence has one shape per batch, whatever the sequence of its neighbours.
    const bool repeated = buckets.size() == shapes.batch.size() && sequences > 1;
    PL_CHECK(repeated || buckets.size() == shapes.batch.size() * sequences);
    for (std::size_t b = 0; b < shapes.batch.size(); ++b) {
      for (std::size_t s = 0; s < sequences; ++s) {
        if (repeated && s > 0) {
          table.entries.push_back(table.entries.back());
          continue;
        }
        const Bucket& bucket = buckets[repeated ? b : b * sequences + s];
        PL_TRY(BatchCost batch, cost_batch(context, bucket, residency.pinned[m], table.layer_classes));
        batch.model = m;
        table.entries.push_back(std::move(batch));
      }
    }
  }
  return table;
}

}  // namespace plumbline::execute
