#include "report/stage_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lower/kernel.h"
#include "report/chain_text.h"
#include "report/choice_text.h"
#include "report/words.h"
#include "validate/statistics.h"

namespace plumbline::report {
namespace {

std::string bytes_text(double bytes) { return figure(bytes, "B"); }

std::string dims_text(const lower::Kernel& kernel) {
  std::string out;
  for (std::size_t d = 0; d < kernel.einsum.dim_names.size(); ++d)
    out += fmt::format("{}{}={}", d == 0 ? "" : " ", kernel.einsum.dim_names[d], kernel.einsum.dims[d]);
  return out;
}

std::string shape_text(std::int64_t batch, std::int64_t sequence) {
  return sequence > 0 ? fmt::format("{} x {}", batch, sequence) : fmt::format("{}", batch);
}

// What was and was not chosen, with reasons; a reason that stands several times (once for every reader of a value) is
// said once.
std::string alternatives_text(const lower::Kernel& kernel) {
  std::vector<std::pair<std::string, int>> lines;
  for (const auto& other : kernel.alternatives) {
    std::string line = fmt::format("{} {}: {}", other.chosen ? "+" : "-", other.name, other.reason);
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const auto& row) { return row.first == line; });
    if (same == lines.end()) {
      lines.emplace_back(std::move(line), 1);
    } else {
      ++same->second;
    }
  }
  std::string out;
  for (const auto& [line, times] : lines)
    out += fmt::format("  {:<34}   {}{}\n", "", line, times > 1 ? fmt::format(" ({} times)", times) : "");
  return out;
}

// The largest compiled shape of a model: what the verbs show in detail.
const schedule::Bucket& largest(const schedule::ModelSchedules& model) { return model.buckets.back(); }

}  // namespace

std::string pre_flight_text(const decide::PreFlight& f) {
  return fmt::format(
      "pre-flight: capacity {:.0f} requests/s in full batches, busy {:.1f} % on average and {:.0f} % of capacity at "
      "the peak, largest batch {:.2f} ms\n",
      f.capacity_per_s, 100 * f.utilization, 100 * f.peak_utilization, f.largest_batch_seconds * 1e3);
}

namespace {

std::string compile_text(const ingest::Scenario& s) {
  const auto& c = s.compile;
  std::string out = fmt::format("compiled for batches of {}", fmt::join(c.shapes.batch, ", "));
  if (!c.shapes.sequence.empty()) out += fmt::format(" and sequences of {}", fmt::join(c.shapes.sequence, ", "));
  out += fmt::format("\n  dataflow {}", c.dataflow);
  for (const auto& [layer, dataflow] : c.dataflow_by_class) out += fmt::format(", {} for {}", dataflow, layer);
  out += "; objective " + c.objective;
  for (const auto& then : c.objective_then) out += ", then " + then;
  out += fmt::format("; {} search; {} constraint row{}\n", c.search, c.constraints.size(),
                     c.constraints.size() == 1 ? "" : "s");
  std::vector<std::string> fusion;
  for (const auto& [on, name] : {std::pair{c.fuse_epilogue, "epilogue"}, std::pair{c.fuse_attention, "attention"},
                                 std::pair{c.fuse_in_place, "in_place"}, std::pair{c.fuse_chains, "chains"}}) {
    if (on) fusion.emplace_back(name);
  }
  return out + fmt::format("  fusion {}; residency {}\n",
                           fusion.empty() ? "off" : fmt::format("{}", fmt::join(fusion, ", ")), c.residency);
}

std::string traffic_text(const ingest::Scenario& s) {
  const auto& a = s.traffic.arrivals;
  std::string out;
  if (a.kind == ingest::ArrivalKind::burst) {
    out = fmt::format("arrivals: {:g} /s, and {:g} /s in the last {} of every {}", a.rate, a.peak,
                      figure(a.length.raw(), "s"), figure(a.every.raw(), "s"));
  } else {
    out = fmt::format("arrivals: {} {:g} /s", a.kind == ingest::ArrivalKind::poisson ? "poisson" : "constant", a.rate);
  }
  return out + fmt::format(", for {}\ntraffic source: {}\n", figure(s.traffic.duration.raw(), "s"),
                           s.traffic.source.empty() ? "none stated, so it counts as synthetic" : s.traffic.source);
}

std::string service_text(const ingest::Scenario& s) {
  const auto seconds = [](Nanoseconds ns) { return figure(static_cast<double>(ns.raw()) * 1e-9, "s"); };
  std::string out = fmt::format(
      "serving: batches of at most {} that wait {}, {}, a queue of {}\n", s.serving.batch_max, seconds(s.serving.wait),
      s.serving.group == ingest::Grouping::mixed ? "mixed lengths" : "one compiled length each", s.serving.queue);
  std::vector<std::string> limits;
  if (s.targets.p95) limits.push_back("p95 " + seconds(*s.targets.p95));
  if (s.targets.p99) limits.push_back("p99 " + seconds(*s.targets.p99));
  if (s.targets.loss) limits.push_back("loss " + figure(*s.targets.loss, "ratio"));
  if (s.targets.quality_identical) limits.emplace_back("every output bit as in the baseline");
  return out + fmt::format("limits: {}\nmetric: {}; gate {}: {} pairs\n",
                           limits.empty() ? "none" : fmt::format("{}", fmt::join(limits, ", ")), s.metric.name,
                           s.gate.name, s.gate.pairs);
}

}  // namespace

std::string ingest_text(const ingest::Scenario& s) {
  std::string out = fmt::format("scenario {}\n", s.name);
  for (const auto& model : s.models) {
    out += fmt::format("model {} ({}), {:.0f} % of requests: {} nodes, {} tensors, opset {}, {}\n", model.name,
                       model.family, 100 * model.share, model.graph->nodes.size(), model.graph->tensors.size(),
                       model.graph->opset, model.graph->has_weights ? "with trained weights" : "shapes only");
  }
  const auto& a = *s.accelerator;
  out += fmt::format("accelerator {}: {} x {} PEs at {:.3g} GHz, energy table {}\n", a.name, a.array().fanout_y,
                     a.array().fanout_x, a.nominal.frequency.raw() * 1e-9, a.energy_table);
  for (const auto& level : a.levels) {
    out += fmt::format("  {:<12} {:>12}{}{}\n", level.name,
                       level.capacity ? bytes_text(static_cast<double>(level.capacity->raw()))
                       : level.array  ? ""
                                      : "unbounded",
                       level.off_chip ? "  off chip" : "", level.array ? "  array" : "");
  }
  out += fmt::format("precision {}: {} x {} into {}, stored as {}{}\n", s.precision.name, s.precision.inputs,
                     s.precision.weights, s.precision.accumulate, s.precision.outputs,
                     s.precision.exact ? ", exact sums" : "");
  out += compile_text(s);
  for (const auto& profile : s.traffic.profiles) {
    out += fmt::format("profile {}: {:.0f} % of requests{}\n", profile.name, 100 * profile.share,
                       profile.sequence > 0 ? fmt::format(", {} tokens", profile.sequence) : "");
  }
  return out + traffic_text(s) + service_text(s);
}

std::string lower_text(const study::Prepared& prepared) {
  std::string out;
  for (const auto& model : prepared.compiled->models) {
    const auto& bucket = largest(model);
    out += fmt::format("{} at {}: {} kernels run {} times\n", model.name, shape_text(bucket.batch, bucket.sequence),
                       bucket.graph->kernels.size(), bucket.graph->instances.size());
    out += fmt::format("  {:<34} {:<18} {:>4} {:>9} {:>10}  {}\n", "kernel", "class", "x", "GMAC", "vector op",
                       "dimensions or reason");
    for (const auto& kernel : bucket.graph->kernels) {
      out += fmt::format("  {:<34} {:<18} {:>4} {:>9.3f} {:>10.3e}  {}\n", kernel.name, kernel.layer_class,
                         kernel.repeats, static_cast<double>(kernel.macs()) * 1e-9,
                         static_cast<double>(kernel.vector_operations()), dims_text(kernel));
      out += alternatives_text(kernel);
    }
  }
  return out;
}

std::string schedule_text(const study::Prepared& prepared) {
  std::string out;
  const auto& residency = prepared.compiled->residency;
  out += fmt::format(
      "weights pinned on chip: {} of {} available\n", bytes_text(static_cast<double>(residency.pinned_bytes)),
      residency.available_bytes < 0 ? "unbounded" : bytes_text(static_cast<double>(residency.available_bytes)));
  for (const auto& model : prepared.compiled->models) {
    const auto& bucket = largest(model);
    out += fmt::format("{} at {}: activations peak at {} on chip, {} spilled\n", model.name,
                       shape_text(bucket.batch, bucket.sequence),
                       bytes_text(static_cast<double>(bucket.schedule->placement.peak)),
                       bytes_text(static_cast<double>(bucket.schedule->placement.spilled)));
    out += placement_text(bucket);
    out += chains_text(*bucket.schedule);
    if (bucket.schedule->proof) out += proof_text(*bucket.schedule->proof);
    out += dataflow_choice_text(bucket, prepared.scenario->accelerator->nominal.frequency);
    for (std::size_t k = 0; k < bucket.graph->kernels.size(); ++k) {
      const auto& kernel = bucket.graph->kernels[k];
      if (kernel.kind != lower::KernelKind::matrix) continue;
      const auto& made = bucket.schedule->kernels[k];
      out += fmt::format("\n{} ({}, {} mappings compared), {}\n{}\n", kernel.name, made.dataflow, made.evaluated,
                         dims_text(kernel), made.text);
      if (made.proof) out += proof_text(*made.proof);
    }
  }
  return out;
}

std::string execute_text(const study::Prepared& prepared) {
  const auto& costs = *prepared.costs;
  std::string out = fmt::format("cost of every compiled shape at {:.4g} GHz\n", costs.clock.frequency.raw() * 1e-9);
  const auto& models = prepared.scenario->models;
  const auto name = [&](const execute::BatchCost& entry) {
    const std::string shape = shape_text(entry.batch, entry.sequence);
    return models.size() > 1 ? models[entry.model].name + " " + shape : shape;
  };
  std::size_t width = 12;
  for (const auto& entry : costs.entries) width = std::max(width, name(entry).size());
  out += fmt::format("{:>{}} {:>11} {:>10} {:>8} {:>14} {:>14} {:>10}\n", "shape", width, "cycles", "time", "useful",
                     "off-array w.", "off-chip w.", "energy");
  for (const auto& entry : costs.entries) {
    execute::Movement moved;
    for (const auto& layer : entry.layers) {
      moved.off_array_weight += layer.movement.off_array_weight;
      moved.off_chip_weight += layer.movement.off_chip_weight;
    }
    out += fmt::format(
        "{:>{}} {:>11} {:>10} {:>6.1f} % {:>14} {:>14} {:>10}\n", name(entry), width, entry.cycles,
        figure(static_cast<double>(entry.duration.raw()) * 1e-9, "s"),
        entry.cycles > 0 ? 100.0 * static_cast<double>(entry.classes[0]) / static_cast<double>(entry.cycles) : 0.0,
        bytes_text(static_cast<double>(moved.off_array_weight)), bytes_text(static_cast<double>(moved.off_chip_weight)),
        figure(static_cast<double>(entry.femtojoules) * 1e-15, "J"));
  }
  const auto& last = costs.entries.back();
  out += fmt::format("\ncycles of {} by class\n", name(last));
  for (std::size_t c = 0; c < execute::kCycleClasses; ++c) {
    if (last.classes[c] == 0) continue;
    out += fmt::format("  {:<16} {:>11} {:>5.1f} %\n", execute::kCycleClassNames[c], last.classes[c],
                       100.0 * static_cast<double>(last.classes[c]) / static_cast<double>(last.cycles));
  }
  return out;
}

std::string serve_text(const study::Prepared& prepared, const validate::Summary& s, std::uint64_t seed) {
  std::string out = fmt::format("one replication of {}, seed {}: {} offered, {} completed, {} lost, {} batches\n",
                                prepared.scenario->name, seed, s.all.offered, s.all.completed, s.all.lost, s.batches);
  const auto ms = [](std::int64_t ns) {
    return ns < 0 ? std::string("-") : fmt::format("{:.3f}", static_cast<double>(ns) * 1e-6);
  };
  out += fmt::format("{:<12} {:>9} {:>9} {:>9} {:>9}\n", "load", "requests", "p50 ms", "p95 ms", "p99 ms");
  const char* names[] = {"base", "burst"};
  for (int phase = 0; phase < validate::kPhases; ++phase) {
    const auto& row = s.by_phase[static_cast<std::size_t>(phase)];
    if (row.offered > 0)
      out += fmt::format("{:<12} {:>9} {:>9} {:>9} {:>9}\n", names[phase], row.completed, ms(row.p50_ns),
                         ms(row.p95_ns), ms(row.p99_ns));
  }
  out += fmt::format("{:<12} {:>9} {:>9} {:>9} {:>9}\n", "all", s.all.completed, ms(s.all.p50_ns), ms(s.all.p95_ns),
                     ms(s.all.p99_ns));
  out += fmt::format(
      "busy {:.1f} % of {:.1f} s, at most {} waiting, {:.1f} % of the rows are padding\n",
      100.0 * static_cast<double>(s.busy_ns) / static_cast<double>(std::max<std::int64_t>(1, s.span_ns)),
      static_cast<double>(s.span_ns) * 1e-9, s.max_queue,
      s.padded_rows > 0 ? 100.0 * (1 - static_cast<double>(s.real_rows) / static_cast<double>(s.padded_rows)) : 0.0);
  return out;
}

std::string validate_text(const decide::Arm& arm, const decide::PreFlight& flight) {
  const auto& scenario = *arm.scenario;
  std::string out = fmt::format("{} over {} replications\n", scenario.name, arm.runs.size()) + pre_flight_text(flight);
  for (const auto& limit : decide::limits(arm, scenario.gate.alpha)) {
    out += fmt::format("{:<5} {} (upper bound {}), limit {}: {}\n", limit.name, figure(limit.value, limit.unit),
                       figure(limit.upper, limit.unit), figure(limit.limit, limit.unit), limit.met ? "met" : "missed");
  }
  out += fmt::format("\n{:<44} {:<34} {:>14} {:>10}\n", "metric", "slice", "mean", "sd %");
  for (const auto& metric : validate::metrics()) {
    std::vector<decide::SliceId> slices = {{"all", "all", "all", "all", false}};
    if (metric.name == scenario.metric.name) {
      for (const auto& id : decide::slices_of(arm)) slices.push_back(id);
    }
    for (const auto& id : slices) {
      std::vector<double> seeds;
      for (const auto& x : decide::values(arm, metric, id)) {
        if (x) seeds.push_back(*x);
      }
      if (seeds.size() != arm.runs.size()) continue;
      const auto interval = validate::mean_interval(seeds, 0.95);
      if (interval.mean == 0) continue;
      out += fmt::format("{:<44} {:<34} {:>14} {:>9.2f}\n", metric.name, id.load == "all" ? "everything" : id.name(),
                         figure(interval.mean, metric.unit), 100 * interval.sd / interval.mean);
    }
  }
  out += "\ninvariants: ";
  std::vector<std::string> broken;
  std::size_t checked = 0;
  for (const auto& run : arm.runs) {
    for (const auto& invariant : run.invariants) {
      ++checked;
      if (!invariant.holds) broken.push_back(fmt::format("{}: {}", invariant.name, invariant.detail));
    }
  }
  out += broken.empty() ? fmt::format("all {} hold exactly\n", checked)
                        : fmt::format("{} of {} broken, first {}\n", broken.size(), checked, broken.front());
  return out;
}

}  // namespace plumbline::report
