#include "report/chain_text.h"

#include <fmt/format.h>

#include "report/words.h"

namespace plumbline::report {
namespace {

std::string bytes_text(std::int64_t bytes) { return figure(static_cast<double>(bytes), "B"); }

std::string cut_text(const schedule::ChainChoice& choice, const schedule::ChainAlternative& way) {
  std::string out = fmt::format("{} chunks of {} {}", way.chunks, way.units, choice.unit);
  if (way.rows > 0) out = fmt::format("{} chunks of {} output rows of an image", way.chunks, way.rows);
  return out + (way.keeps_parameters ? ", parameters kept" : "");
}

std::string more_text(std::int64_t bytes) {
  return bytes_text(bytes < 0 ? -bytes : bytes) + (bytes < 0 ? " less" : " more");
}

std::string figures_text(const schedule::ChainChoice& choice, const schedule::ChainAlternative& way) {
  const double change = choice.value_without > 0 ? 100 * (way.value / choice.value_without - 1) : 0;
  return fmt::format(
      "    saves {} off chip, {} of spill, {} of peak; parameters: {} off chip, {} outside the array; "
      "objective {:+.2f} %\n",
      bytes_text(way.off_chip_saved), bytes_text(way.spill_saved), bytes_text(way.peak_saved),
      more_text(way.extra_weights), more_text(way.extra_weight_reads), change);
}

}  // namespace

std::string placement_text(const schedule::Bucket& bucket) {
  const schedule::Placement& placed = bucket.schedule->placement;
  std::string out;
  if (!placed.in_place.empty()) {
    out += fmt::format("in place: {} kernels write over an input; apart, activations would peak at {}, {} spilled\n",
                       placed.in_place.size(), bytes_text(placed.peak_apart), bytes_text(placed.spilled_apart));
  }
  if (placed.streamed > 0) {
    out += fmt::format(
        "attention: {} scores exist for two groups at a time; whole, activations would peak at {}, {} spilled\n",
        placed.streamed, bytes_text(placed.peak_whole), bytes_text(placed.spilled_whole));
  }
  return out;
}

std::string chains_text(const schedule::Schedule& schedule) {
  std::string out;
  for (const schedule::ChainChoice& choice : schedule.chains) {
    out += fmt::format("chain of {}{}, {} between:", choice.kind,
                       choice.repeats > 1 ? fmt::format(", {} times", choice.repeats) : "",
                       bytes_text(choice.between_bytes));
    for (std::size_t k = 0; k < choice.kernels.size(); ++k) {
      out += fmt::format("{} {}", k > 0 ? "," : "", choice.kernels[k]);
    }
    const bool tried = !choice.alternatives.empty() && choice.alternatives[choice.best].failure.empty();
    out += choice.taken ? "\n  taken" : "\n  not taken";
    if (tried) {
      out += fmt::format("{} {}, the best of {}", choice.taken ? " in" : ":",
                         cut_text(choice, choice.alternatives[choice.best]), choice.alternatives.size());
    }
    out += fmt::format(": {}\n", choice.reason);
    if (tried) out += figures_text(choice, choice.alternatives[choice.best]);
  }
  return out;
}

}  // namespace plumbline::report
