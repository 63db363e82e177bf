#include "report/choice_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "report/words.h"
#include "schedule/choice_reasons.h"

namespace plumbline::report {
namespace {

using schedule::ClassAlternative;
using schedule::ClassChoice;
using schedule::MappingPrice;

double megabytes(std::int64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

/// W of counted energy while the kernels run one after the other.
double watts(const MappingPrice& price, Hertz clock) {
  return price.cycles > 0 ? price.femtojoules * 1e-15 / (static_cast<double>(price.cycles) / clock.raw()) : 0;
}

std::string figures(std::string_view name, const MappingPrice& price, Hertz clock) {
  return fmt::format("  {:<22} {:>10.2f} {:>10.2f} {:>10.2f} {:>11} {:>12} {:>8.2f}\n", name,
                     megabytes(price.off_array_weight), megabytes(price.off_array_activation), megabytes(price.psum),
                     figure(price.femtojoules * 1e-15, "J"), price.cycles, watts(price, clock));
}

std::string against(double chosen, double other, std::string_view unit, int digits) {
  if (chosen == other) return fmt::format("{:.{}f} {} either way", chosen, digits, unit);
  return fmt::format("{:.{}f} against {:.{}f} {}", chosen, digits, other, digits, unit);
}

std::string either(const std::string& chosen, const std::string& other) {
  return chosen == other ? chosen + " either way" : chosen + " against " + other;
}

bool same(const MappingPrice& a, const MappingPrice& b) {
  return a.off_array_weight == b.off_array_weight && a.off_array_activation == b.off_array_activation &&
         a.psum == b.psum && a.cycles == b.cycles && a.femtojoules == b.femtojoules;
}

/// The strongest single dataflow that would have moved or cost anything else.
const ClassAlternative* runner_up(const ClassChoice& choice) {
  const ClassAlternative* best = nullptr;
  for (const ClassAlternative& row : choice.alternatives) {
    if (!row.failure.empty() || row.won == choice.kernels || same(row.total, choice.chosen)) continue;
    if (best == nullptr || row.value < best->value) best = &row;
  }
  return best;
}

std::string reason(const ClassChoice& choice, Hertz clock) {
  const ClassAlternative* other = runner_up(choice);
  if (other == nullptr) return "  no other dataflow has a mapping that moves or costs anything else\n";
  const MappingPrice& a = choice.chosen;
  const MappingPrice& b = other->total;
  const bool psum = a.psum != b.psum;
  return fmt::format(
      "  against {}: locality, weights into the array {}, activations {}{}; movement cost {}; throughput {}, power "
      "{}\n",
      other->dataflow, against(megabytes(a.off_array_weight), megabytes(b.off_array_weight), "MB", 2),
      against(megabytes(a.off_array_activation), megabytes(b.off_array_activation), "MB", 2),
      psum ? ", partial sums " + against(megabytes(a.psum), megabytes(b.psum), "MB", 2) : "",
      either(figure(a.femtojoules * 1e-15, "J"), figure(b.femtojoules * 1e-15, "J")),
      against(static_cast<double>(a.cycles) * 1e-6, static_cast<double>(b.cycles) * 1e-6, "M cycles", 3),
      against(watts(a, clock), watts(b, clock), "W", 2));
}

std::string winners(const ClassChoice& choice) {
  std::string text;
  for (const ClassAlternative& row : choice.alternatives) {
    if (row.won == 0) continue;
    text += fmt::format("{}{} ({} of {} kernels)", text.empty() ? "" : ", ", row.dataflow, row.won, choice.kernels);
  }
  return text;
}

}  // namespace

std::string dataflow_choice_text(const schedule::Bucket& bucket, Hertz clock) {
  std::string out;
  for (const ClassChoice& choice : schedule::explain_choices(*bucket.graph, *bucket.schedule)) {
    if (choice.alternatives.size() < 2) continue;
    out += fmt::format("\n{}: {}\n", choice.layer_class, winners(choice));
    out += fmt::format("  {:<22} {:>10} {:>10} {:>10} {:>11} {:>12} {:>8}\n", "if every kernel ran", "weight MB",
                       "activ. MB", "psum MB", "energy", "cycles", "W");
    for (const ClassAlternative& row : choice.alternatives) {
      out += row.failure.empty() ? figures(row.dataflow, row.total, clock)
                                 : fmt::format("  {:<22} {}\n", row.dataflow, row.failure);
    }
    out += figures("as chosen", choice.chosen, clock) + reason(choice, clock);
  }
  if (!out.empty()) out = "\nwhy these dataflows (simple tilings of each, nothing resident):\n" + out;
  return out;
}

std::string proof_text(const schedule::Proof& proof) {
  // Below this the sums of best and bound differ by rounding alone.
  constexpr double kRounding = 1e-9;
  const std::string verdict = proof.gap <= kRounding
                                  ? fmt::format("the least there is: {:.6g}", proof.best)
                                  : fmt::format("{:.6g}, at most {:.3g} % above the least there can be ({:.6g})",
                                                proof.best, 100 * proof.gap, proof.lower_bound);
  return fmt::format(
      "proof ({}): {} {}; covers {}; on {}; {} mappings counted, {} of {} parts of the space ruled out\n", proof.scope,
      proof.objective, verdict, proof.covered, proof.certified_on, proof.evaluated, proof.pruned, proof.bounded);
}

}  // namespace plumbline::report
