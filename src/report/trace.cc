#include "report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "report/words.h"

namespace plumbline::report {
namespace {

using study::Recording;

// Keeps the file near 4 MB: batches shown per arm, and how many of them (around the burst) with what runs inside.
constexpr std::size_t kMostBatches = 4000;
constexpr std::size_t kMostDetailed = 400;
constexpr std::size_t kMostCounters = 8000;
constexpr std::int64_t kSteadyWindowNs = 2'000'000'000;  // ns shown of traffic without bursts
constexpr std::int64_t kMarginNs = 100'000'000;          // ns shown in detail before and after a burst

struct Window {
  std::int64_t end_ns = 0;
  std::int64_t detail_start_ns = 0;
  std::int64_t detail_end_ns = 0;
  std::string words;
};

Window window_of(const ingest::Arrivals& arrivals) {
  Window out;
  if (arrivals.kind == ingest::ArrivalKind::burst) {
    const auto period = static_cast<std::int64_t>(arrivals.every.raw() * 1e9);
    const auto length = static_cast<std::int64_t>(arrivals.length.raw() * 1e9);
    out.end_ns = period + kMarginNs;
    out.detail_start_ns = period - length - kMarginNs;
    out.detail_end_ns = out.end_ns;
    out.words = fmt::format("the first burst period ({} s); kernels inside batches from {:.3f} s on",
                            arrivals.every.raw(), static_cast<double>(out.detail_start_ns) * 1e-9);
  } else {
    out.end_ns = kSteadyWindowNs;
    out.detail_end_ns = kSteadyWindowNs;
    out.words = fmt::format("the first {} s", static_cast<double>(kSteadyWindowNs) * 1e-9);
  }
  return out;
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    out_ += first_ ? "\n" : ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

 private:
  std::string& out_;
  bool first_ = true;
};

constexpr int kBatchThread = 1;
constexpr int kLostThread = 2;

// Trace timestamps are microseconds; nanoseconds survive as three decimals.
std::string us(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string shape(const execute::BatchCost& entry) {
  return entry.sequence > 0 ? fmt::format("{}x{}", entry.batch, entry.sequence) : fmt::format("{}", entry.batch);
}

void add_names(Writer& writer, int pid, const std::string& arm, const std::string& scenario) {
  writer.event(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", pid,
               json_text(arm + ": " + scenario));
  writer.event(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})", pid, pid);
  writer.event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"batches"}}}})", pid, kBatchThread);
  writer.event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":"lost requests"}}}})", pid,
               kLostThread);
}

// What runs inside a batch, in order and in proportion to its cycles, with the classes of each kernel's cycles.
void add_kernels(Writer& writer, int pid, const execute::BatchCost& entry, const serve::BatchRecord& batch) {
  std::int64_t total = 0;
  for (const auto& kernel : entry.kernels) total += kernel.repeats * kernel.cycles;
  total = std::max(total, entry.cycles);
  if (total <= 0) return;
  const double scale = static_cast<double>(batch.end_ns - batch.start_ns) / static_cast<double>(total);
  std::int64_t cycles = 0;
  std::int64_t at = batch.start_ns;
  for (const auto& kernel : entry.kernels) {
    cycles += kernel.repeats * kernel.cycles;
    const std::int64_t end =
        batch.start_ns + static_cast<std::int64_t>(std::floor(static_cast<double>(cycles) * scale));
    if (end <= at) continue;
    std::string classes;
    for (std::size_t c = 0; c < execute::kCycleClasses; ++c) {
      if (kernel.classes[c] > 0)
        classes += fmt::format(",\"{} cycles\":{}", execute::kCycleClassNames[c], kernel.classes[c] * kernel.repeats);
    }
    writer.event(
        R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"args":{{"layer class":{},"executions":{},"off-array weight bytes":{}{}}}}})",
        pid, kBatchThread, us(at), us(end - at),
        json_text(kernel.repeats > 1 ? fmt::format("{} (×{})", kernel.name, kernel.repeats) : kernel.name),
        json_text(kernel.layer_class), kernel.repeats, kernel.repeats * kernel.movement.off_array_weight, classes);
    at = end;
  }
}

std::size_t add_batches(Writer& writer, int pid, const Recording& recording, const Window& window) {
  const auto& costs = *recording.prepared.costs;
  std::size_t shown = 0;
  std::size_t detailed = 0;
  for (const auto& batch : recording.run.batches) {
    if (batch.start_ns >= window.end_ns || shown == kMostBatches) break;
    const auto& entry = costs.entries[static_cast<std::size_t>(batch.entry)];
    std::int64_t weight = 0;
    for (const auto& layer : entry.layers) weight += layer.movement.off_array_weight;
    writer.event(
        R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"{} n={}","args":{{"requests":{},"compiled batch":{},"compiled sequence":{},"padding requests":{},"cost table entry":{},"cycles":{},"off-array weight bytes":{}}}}})",
        pid, kBatchThread, us(batch.start_ns), us(batch.end_ns - batch.start_ns), shape(entry), batch.size, batch.size,
        entry.batch, entry.sequence, entry.batch - batch.size, batch.entry, entry.cycles, weight);
    ++shown;
    if (batch.start_ns < window.detail_start_ns || batch.start_ns >= window.detail_end_ns || detailed == kMostDetailed)
      continue;
    ++detailed;
    add_kernels(writer, pid, entry, batch);
  }
  return shown;
}

// Requests waiting: admitted arrivals come in, and a batch takes its members out at its start.
void add_queue(Writer& writer, int pid, const Recording& recording, const Window& window) {
  const auto& arrivals = recording.trace->arrivals;
  const auto& run = recording.run;
  std::size_t next_batch = 0;
  std::int64_t waiting = 0;
  std::size_t written = 0;
  const auto emit = [&](std::int64_t at) {
    writer.event(R"({{"ph":"C","pid":{},"ts":{},"name":"queue length","args":{{"requests":{}}}}})", pid, us(at),
                 waiting);
    ++written;
  };
  for (std::size_t i = 0; i < arrivals.size() && arrivals[i].time_ns < window.end_ns && written < kMostCounters; ++i) {
    while (next_batch < run.batches.size() && run.batches[next_batch].start_ns < arrivals[i].time_ns) {
      waiting -= run.batches[next_batch].size;
      emit(run.batches[next_batch].start_ns);
      ++next_batch;
    }
    if (run.requests[i].batch == serve::kLost) {
      writer.event(
          R"({{"ph":"i","s":"t","pid":{},"tid":{},"ts":{},"name":"lost request","args":{{"profile":{},"burst":{}}}}})",
          pid, kLostThread, us(arrivals[i].time_ns), arrivals[i].profile, arrivals[i].phase == serve::LoadPhase::burst);
      continue;
    }
    ++waiting;
    emit(arrivals[i].time_ns);
  }
}

// Mean power while a batch runs and while none does.
void add_power(Writer& writer, int pid, const Recording& recording, const Window& window) {
  const auto& costs = *recording.prepared.costs;
  const double idle = costs.idle.raw() + costs.host.raw();
  const auto emit = [&](std::int64_t at, double watts) {
    writer.event(R"({{"ph":"C","pid":{},"ts":{},"name":"power","args":{{"W":{:.3f}}}}})", pid, us(at), watts);
  };
  emit(0, idle);
  std::size_t written = 0;
  const auto& batches = recording.run.batches;
  for (std::size_t b = 0; b < batches.size() && batches[b].start_ns < window.end_ns && written < kMostBatches;
       ++b, ++written) {
    const auto& entry = costs.entries[static_cast<std::size_t>(batches[b].entry)];
    const double seconds = static_cast<double>(batches[b].end_ns - batches[b].start_ns) * 1e-9;
    const double dynamic = seconds > 0 ? static_cast<double>(entry.femtojoules) * 1e-15 / seconds : 0;
    emit(batches[b].start_ns, idle + costs.active.raw() + dynamic);
    const bool followed = b + 1 < batches.size() && batches[b + 1].start_ns == batches[b].end_ns;
    if (!followed) emit(batches[b].end_ns, idle);
  }
}

}  // namespace

std::string perfetto_json(const study::DecisionStudy& study) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const Window window = window_of(study.table.baseline.scenario->traffic.arrivals);
  Writer writer(out);
  std::string omitted;
  int pid = 0;
  for (const auto* recording : {&study.baseline, &study.candidate}) {
    const std::string arm = ++pid == 1 ? "baseline" : "candidate";
    if (!recording->trace || !recording->prepared.costs) continue;
    add_names(writer, pid, arm, recording->prepared.scenario->name);
    const std::size_t shown = add_batches(writer, pid, *recording, window);
    add_queue(writer, pid, *recording, window);
    add_power(writer, pid, *recording, window);
    omitted += fmt::format(",\"{} batches\":\"{} of {} shown\"", arm, shown, recording->run.batches.size());
  }
  const std::string seed = study.table.seeds.empty() ? "" : std::to_string(study.table.seeds.front());
  out +=
      fmt::format("\n],\"otherData\":{{\"window\":{},\"seed\":\"{}\"{}}}}}\n", json_text(window.words), seed, omitted);
  return out;
}

}  // namespace plumbline::report
