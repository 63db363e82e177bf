#include "report/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "report/words.h"

namespace plumbline::report {
namespace {

using study::DecisionStudy;

const ingest::Change* find_change(const DecisionStudy& study, const std::string& id) {
  for (const auto& change : study.table.changes) {
    if (change.id == id) return &change;
  }
  return nullptr;
}

WhyStep input_step(const ingest::Change& change) {
  return {"input", fmt::format("'{}' sets {}", change.id, ingest::flow_text(change.patch)), change.span.where()};
}

// "16 x 512"; with the model before it where a scenario has several, since each has its own batches of that shape.
std::string shape_name(const DecisionStudy& study, const execute::BatchCost& entry) {
  const auto& models = study.table.candidate.scenario->models;
  const std::string shape =
      entry.sequence > 0 ? fmt::format("{} x {}", entry.batch, entry.sequence) : fmt::format("{}", entry.batch);
  return models.size() > 1 ? models[entry.model].name + " " + shape : shape;
}

// Batches of each compiled shape, over all seeds.
std::vector<std::int64_t> batch_counts(const decide::Arm& arm) {
  std::vector<std::int64_t> out;
  for (const auto& run : arm.runs) {
    out.resize(std::max(out.size(), run.batch_counts.size()), 0);
    for (std::size_t e = 0; e < run.batch_counts.size(); ++e) out[e] += run.batch_counts[e];
  }
  return out;
}

const execute::KernelCost* find_kernel(const execute::BatchCost& entry, const std::string& name) {
  for (const auto& kernel : entry.kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

// The kernel of a layer class whose weight traffic differs most between the arms, with both loop nests.
void add_kernel_steps(const execute::BatchCost& before, const execute::BatchCost& after, const std::string& layer,
                      std::vector<WhyStep>& steps) {
  const execute::KernelCost* worst = nullptr;
  const execute::KernelCost* worst_before = nullptr;
  std::int64_t most = -1;
  for (const auto& kernel : after.kernels) {
    if (kernel.layer_class != layer) continue;
    const auto* old = find_kernel(before, kernel.name);
    if (old == nullptr) continue;
    const std::int64_t moved =
        std::abs(kernel.repeats * kernel.movement.off_array_weight - old->repeats * old->movement.off_array_weight);
    if (moved > most) {
      most = moved;
      worst = &kernel;
      worst_before = old;
    }
  }
  if (worst == nullptr) return;
  steps.push_back(
      {"kernel",
       fmt::format("{} ({} times in the model): {:.3f} MB of weights per execution, {:.3f} MB before", worst->name,
                   worst->repeats, static_cast<double>(worst->movement.off_array_weight) * 1e-6,
                   static_cast<double>(worst_before->movement.off_array_weight) * 1e-6),
       ""});
  if (worst->mapping == worst_before->mapping) {
    steps.push_back({"mapping", "the same loop nest in both arms:\n" + worst->mapping, ""});
  } else {
    steps.push_back({"mapping", "baseline:\n" + worst_before->mapping, ""});
    steps.push_back({"mapping", "candidate:\n" + worst->mapping, ""});
  }
}

void add_shape_steps(const DecisionStudy& study, std::vector<WhyStep>& steps) {
  const auto& before = *study.table.baseline.costs;
  const auto& after = *study.table.candidate.costs;
  const auto counts_before = batch_counts(study.table.baseline);
  const auto counts_after = batch_counts(study.table.candidate);
  if (before.entries.size() != after.entries.size() || before.layer_classes != after.layer_classes) {
    steps.push_back(
        {"batch shape", "the arms compile other shapes or layers, so batches are not compared one by one", ""});
    return;
  }
  std::size_t worst = 0;
  std::size_t worst_layer = 0;
  double most = 0;
  for (std::size_t e = 0; e < after.entries.size(); ++e) {
    for (std::size_t l = 0; l < after.layer_classes.size(); ++l) {
      const double delta = static_cast<double>(after.entries[e].layers[l].movement.off_array_weight -
                                               before.entries[e].layers[l].movement.off_array_weight);
      const double weight = std::abs(delta) * static_cast<double>(e < counts_after.size() ? counts_after[e] : 0);
      if (weight > most) {
        most = weight;
        worst = e;
        worst_layer = l;
      }
    }
  }
  for (std::size_t e = 0; e < after.entries.size(); ++e) {
    std::int64_t b = 0;
    std::int64_t a = 0;
    for (std::size_t l = 0; l < after.layer_classes.size(); ++l) {
      b += before.entries[e].layers[l].movement.off_array_weight;
      a += after.entries[e].layers[l].movement.off_array_weight;
    }
    const std::int64_t nb = e < counts_before.size() ? counts_before[e] : 0;
    const std::int64_t na = e < counts_after.size() ? counts_after[e] : 0;
    if (nb == 0 && na == 0) continue;
    steps.push_back({"batch shape",
                     fmt::format("{:>9}: {:8.2f} MB of weights a batch, {:8.2f} MB before; {} batches, {} before",
                                 shape_name(study, after.entries[e]), static_cast<double>(a) * 1e-6,
                                 static_cast<double>(b) * 1e-6, na, nb),
                     ""});
  }
  if (most <= 0) {
    steps.push_back(
        {"kernel", "every kernel moves what it moved before in every shape: the batches changed, not the kernels", ""});
    return;
  }
  steps.push_back({"layer class",
                   fmt::format("{} in {} batches changes its weight movement most", after.layer_classes[worst_layer],
                               shape_name(study, after.entries[worst])),
                   ""});
  add_kernel_steps(before.entries[worst], after.entries[worst], after.layer_classes[worst_layer], steps);
}

void add_layer_steps(const decide::Decision& decision, const decide::SliceId& slice, std::vector<WhyStep>& steps) {
  for (const auto& row : decision.slices) {
    if (row.id.layer_class == "all" || row.id.family != slice.family || row.id.profile != slice.profile ||
        row.id.load != slice.load || !row.paired.valid)
      continue;
    if (row.paired.baseline == 0 && row.paired.candidate == 0) continue;
    steps.push_back({"layer class",
                     fmt::format("{:<18} {:>10}, {:>10} before ({:+.1f} %)", row.id.layer_class,
                                 figure(row.paired.candidate, metric_unit(row.metric)),
                                 figure(row.paired.baseline, metric_unit(row.metric)), row.paired.change_percent),
                     ""});
  }
}

WhyFinding slice_finding(const DecisionStudy& study, const decide::Decision& decision,
                         const decide::SliceJudgement& row, std::string id) {
  WhyFinding out;
  out.id = std::move(id);
  const auto& p = row.paired;
  out.what = fmt::format("{} in {}: {} -> {} ({:+.1f} %), {}", row.metric, row.id.name(),
                         figure(p.baseline, metric_unit(row.metric)), figure(p.candidate, metric_unit(row.metric)),
                         p.change_percent, decide::slice_verdict_name(row.verdict));
  out.steps.push_back(
      {"slice",
       fmt::format("mean of {} paired replications, 95 % interval {:+.2f} to {:+.2f} %, p {:.3g}, {} requests", p.n,
                   p.ci_low, p.ci_high, p.p, p.requests),
       ""});
  add_layer_steps(decision, row.id, out.steps);
  add_shape_steps(study, out.steps);
  if (const auto* change = find_change(study, decision.first_failing_change)) out.steps.push_back(input_step(*change));
  return out;
}

/// The harm that was found first, where no judged slice shows it: a latency, or a metric over all requests.
WhyFinding symptom_finding(const DecisionStudy& study, const decide::Decision& decision, const decide::Paired& p) {
  WhyFinding out;
  out.id = "symptom";
  out.what = fmt::format("{} in {}: {} -> {} ({:+.1f} %), harmful", decision.symptom.metric,
                         decision.symptom.slice.name(), figure(p.baseline, metric_unit(decision.symptom.metric)),
                         figure(p.candidate, metric_unit(decision.symptom.metric)), p.change_percent);
  out.steps.push_back({"slice",
                       fmt::format("mean of {} paired replications, 95 % interval {:+.2f} to {:+.2f} %, p {:.3g}", p.n,
                                   p.ci_low, p.ci_high, p.p),
                       ""});
  if (const auto* change = find_change(study, decision.first_failing_change)) out.steps.push_back(input_step(*change));
  return out;
}

WhyFinding change_finding(const DecisionStudy& study, const decide::Decision& decision, const ingest::Change& change) {
  WhyFinding out;
  out.id = "change:" + change.id;
  const auto* attribution = decision.symptom_attribution ? &*decision.symptom_attribution : &decision.attribution;
  out.what = fmt::format("'{}' belongs to {} and {}", change.id, change.owner.empty() ? "nobody named" : change.owner,
                         ingest::stage_name(change.stage));
  for (const auto& share : attribution->shares) {
    if (share.change != change.id) continue;
    out.steps.push_back(
        {"attribution",
         fmt::format("Shapley value {:+.6g} {} of {:+.6g} on {} in {} (95 % interval {:+.6g} to {:+.6g})", share.value,
                     metric_unit(attribution->metric), attribution->total, attribution->metric,
                     attribution->slice.name(), share.ci_low, share.ci_high),
         ""});
  }
  for (const auto& h : decision.hypotheses) {
    if (h.change != change.id) continue;
    out.steps.push_back({"hypothesis",
                         fmt::format("{}: predicted {}, measured {}, {}", h.claim,
                                     h.predicted ? fmt::format("{:+.6g}", *h.predicted) : h.predicted_why,
                                     h.measured ? fmt::format("{:+.6g}", *h.measured) : "nothing", h.verdict),
                         ""});
  }
  if (change.id == decision.first_failing_change) add_shape_steps(study, out.steps);
  out.steps.push_back(input_step(change));
  return out;
}

}  // namespace

std::vector<WhyFinding> why_findings(const DecisionStudy& study, const decide::Decision& decision) {
  std::vector<WhyFinding> out;
  WhyFinding verdict{"verdict", fmt::format("the verdict is {}", decide::verdict_name(decision.verdict)), {}};
  for (const auto& reason : decision.reasons) verdict.steps.push_back({"reason", reason, ""});
  for (const auto& guard : decision.guards)
    verdict.steps.push_back(
        {"guard", fmt::format("{}: {} ({})", guard.name, guard.holds ? "holds" : "does not hold", guard.detail), ""});
  out.push_back(std::move(verdict));
  const auto shows_symptom = [&](const decide::SliceJudgement& row) {
    return row.id.gated && row.paired.valid && row.id == decision.symptom.slice &&
           row.metric == decision.symptom.metric;
  };
  const bool in_a_slice = std::any_of(decision.slices.begin(), decision.slices.end(), shows_symptom);
  if (decision.symptom.harmful && !in_a_slice && decision.symptom_paired)
    out.push_back(symptom_finding(study, decision, *decision.symptom_paired));
  const bool several = study.table.candidate.scenario->models.size() > 1;
  for (const auto& row : decision.slices) {
    if (!row.id.gated || !row.paired.valid) continue;
    if (decision.symptom.harmful && shows_symptom(row)) out.push_back(slice_finding(study, decision, row, "symptom"));
    const std::string family = several ? row.id.family + "/" : "";
    out.push_back(
        slice_finding(study, decision, row, fmt::format("slice:{}{}/{}", family, row.id.load, row.id.profile)));
  }
  for (std::size_t i = 0; i < decision.sla_candidate.size() && i < decision.sla_baseline.size(); ++i) {
    const auto& after = decision.sla_candidate[i];
    const auto& before = decision.sla_baseline[i];
    WhyFinding limit{
        "limit:" + after.name,
        fmt::format("{} {} (upper bound {}) against the limit {}", after.name, figure(after.value, after.unit),
                    figure(after.upper, after.unit), figure(after.limit, after.unit)),
        {}};
    limit.steps.push_back(
        {"before",
         fmt::format("{} (upper bound {})", figure(before.value, before.unit), figure(before.upper, before.unit)), ""});
    limit.steps.push_back(
        {"service",
         fmt::format("the largest batch takes {:.3f} ms, the queue is served at {:.0f} requests/s at most",
                     decision.preflight.largest_batch_seconds * 1e3, decision.preflight.capacity_per_s),
         ""});
    out.push_back(std::move(limit));
  }
  for (const auto& change : study.table.changes) out.push_back(change_finding(study, decision, change));
  WhyFinding quality{"quality", "quality evidence: " + decision.quality.how, {{"reason", decision.quality.detail, ""}}};
  if (!decision.quality.proof.empty())
    quality.steps.push_back({"proof", "both arms hash to " + decision.quality.proof, ""});
  out.push_back(std::move(quality));
  if (decision.fix) {
    WhyFinding fix{"fix",
                   fmt::format("'{}' recovers {:.0f} % and would be judged {}", decision.fix->id,
                               decision.fix->recovers_percent, decide::verdict_name(decision.fix->verdict)),
                   {}};
    fix.steps.push_back({"patch", ingest::flow_text(decision.fix->patch), ""});
    for (const auto& reason : decision.fix->reasons) fix.steps.push_back({"reason", reason, ""});
    fix.steps.push_back(
        {"rollback",
         fmt::format("{} ({})", ingest::flow_text(decision.fix->rollback_patch),
                     decision.fix->rollback_proven ? "proven: it gives the baseline's hash" : "not proven"),
         ""});
    for (const auto& rejected : decision.rejected_fixes)
      fix.steps.push_back({"rejected", fmt::format("{}: {}", rejected.id, rejected.why), ""});
    out.push_back(std::move(fix));
  }
  return out;
}

std::string why_json(const std::vector<WhyFinding>& findings) {
  nlohmann::ordered_json out = {{"plumbline", 1}, {"kind", "why"}, {"findings", nlohmann::ordered_json::array()}};
  for (const auto& finding : findings) {
    nlohmann::ordered_json steps = nlohmann::ordered_json::array();
    for (const auto& step : finding.steps)
      steps.push_back({{"level", step.level}, {"text", step.text}, {"where", step.where}});
    out["findings"].push_back({{"id", finding.id}, {"what", finding.what}, {"steps", std::move(steps)}});
  }
  return out.dump(1) + "\n";
}

Result<std::vector<WhyFinding>> read_why(const SourceRef& source) {
  const auto json = nlohmann::json::parse(source->text, nullptr, false);
  if (json.is_discarded()) return make_error("json-syntax", {source, 0, 0, 1}, "the file is not JSON");
  std::vector<WhyFinding> out;
  try {
    if (json.at("kind") != "why")
      return make_error("unknown-document", {source, 0, 0, 1}, "the document is no why.json");
    for (const auto& finding : json.at("findings")) {
      WhyFinding row{finding.at("id"), finding.at("what"), {}};
      for (const auto& step : finding.at("steps"))
        row.steps.push_back({step.at("level"), step.at("text"), step.at("where")});
      out.push_back(std::move(row));
    }
  } catch (const nlohmann::json::exception&) {
    return make_error("unknown-document", {source, 0, 0, 1}, "the document lacks what a why.json holds");
  }
  return out;
}

std::string why_text(const WhyFinding& finding) {
  std::string out = finding.what + "\n";
  std::string last;
  for (const auto& step : finding.steps) {
    std::string text = step.text;
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
      text.insert(at + 1, std::string(16, ' '));
    out += fmt::format("  {:<12}  {}{}\n", step.level == last ? "" : step.level, text,
                       step.where.empty() ? "" : fmt::format("\n{}at {}", std::string(16, ' '), step.where));
    last = step.level;
  }
  return out;
}

}  // namespace plumbline::report
