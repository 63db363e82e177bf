#include "report/html_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/charts.h"
#include "report/words.h"

namespace plumbline::report {
namespace {

using decide::Decision;
using study::DecisionStudy;

std::string e(std::string_view text) { return escape_html(text); }

constexpr std::string_view kKey =
    "<p class=\"key soft\"><i class=\"baseline\"></i>baseline<i class=\"candidate\"></i>{}</p>\n";

Hue verdict_hue(decide::SliceVerdict verdict) {
  if (verdict == decide::SliceVerdict::harmed) return Hue::bad;
  return verdict == decide::SliceVerdict::pass ? Hue::good : Hue::neutral;
}

std::string attribution_part(const DecisionStudy& study, const decide::Attribution& attribution,
                             const std::string& title) {
  const auto& scenario = *study.table.baseline.scenario;
  const auto* metric = validate::find_metric(attribution.metric);
  const bool lower = metric == nullptr || metric->lower_is_better;
  const std::string unit = metric_unit(attribution.metric);
  std::vector<Mark> marks;
  for (const auto& share : attribution.shares) {
    const double harm = lower ? share.value : -share.value;
    const bool clear = share.ci_low > 0 || share.ci_high < 0;
    const std::string text =
        signed_quantity(share.value, unit) + (share.percent ? fmt::format(" ({})", percent(*share.percent)) : "");
    marks.push_back({share.change, text, share.value, share.ci_low, share.ci_high,
                     !clear     ? Hue::neutral
                     : harm > 0 ? Hue::bad
                                : Hue::good});
  }
  marks.push_back({"all changes together", signed_quantity(attribution.total, unit), attribution.total,
                   attribution.total, attribution.total, Hue::neutral});
  std::string out = fmt::format("<h3>{}: {} in {}</h3>\n", e(title), e(metric_words(attribution.metric)),
                                e(slice_words(attribution.slice, scenario)));
  out += mark_chart(title, marks, {}, false);
  std::string pairs;
  for (const auto& pair : attribution.interactions) {
    if (pair.value == 0) continue;
    pairs += fmt::format("<li>{} together with {}: {} beyond their sum</li>", e(pair.changes.front()),
                         e(pair.changes.back()), signed_quantity(pair.value, unit));
  }
  for (const auto& name : attribution.no_value)
    pairs += fmt::format("<li>{} has no value: it cannot be run</li>", e(name));
  return pairs.empty() ? out : out + "<ul>" + pairs + "</ul>\n";
}

std::vector<double> class_cycles(const decide::Arm& arm) {
  std::vector<double> out(execute::kCycleClasses, 0.0);
  for (const auto& run : arm.runs) {
    for (std::size_t c = 0; c < execute::kCycleClasses; ++c) out[c] += static_cast<double>(run.cycles[c]);
  }
  return out;
}

std::vector<std::int64_t> batch_counts(const decide::Arm& arm) {
  std::vector<std::int64_t> out;
  for (const auto& run : arm.runs) {
    out.resize(std::max(out.size(), run.batch_counts.size()), 0);
    for (std::size_t i = 0; i < run.batch_counts.size(); ++i) out[i] += run.batch_counts[i];
  }
  return out;
}

std::string cycles_part(const decide::EvidenceTable& table) {
  const auto before = class_cycles(table.baseline);
  const auto after = class_cycles(table.candidate);
  Stack stack;
  stack.rows = {"baseline", "candidate"};
  stack.values.resize(2);
  for (std::size_t c = 0; c < execute::kCycleClasses; ++c) {
    if (before[c] == 0 && after[c] == 0) continue;
    std::string name(execute::kCycleClassNames[c]);
    std::replace(name.begin(), name.end(), '_', ' ');
    stack.parts.push_back(name);
    stack.values[0].push_back(before[c]);
    stack.values[1].push_back(after[c]);
  }
  return "<h3>Cycles of the array by class</h3>\n" + stack_chart("cycles of the array by class", stack);
}

std::string batches_part(const decide::EvidenceTable& table) {
  const auto& before = *table.baseline.costs;
  const auto& after = *table.candidate.costs;
  // Shapes by name: the arms may compile different ones.
  std::vector<std::string> names;
  std::vector<std::array<std::int64_t, 2>> counts;
  const auto add = [&](const execute::CostTable& costs, const decide::Arm& arm, std::size_t side) {
    const auto n = batch_counts(arm);
    for (std::size_t i = 0; i < costs.entries.size() && i < n.size(); ++i) {
      const auto& entry = costs.entries[i];
      std::string name =
          entry.sequence > 0 ? fmt::format("{} × {}", entry.batch, entry.sequence) : fmt::format("{}", entry.batch);
      if (costs.models > 1) name += fmt::format(" model {}", entry.model);
      auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
      if (at == names.size()) {
        names.push_back(name);
        counts.push_back({0, 0});
      }
      counts[at][side] += n[i];
    }
  };
  add(before, table.baseline, 0);
  add(after, table.candidate, 1);
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (counts[i][0] == 0 && counts[i][1] == 0) continue;
    pairs.push_back({names[i], static_cast<double>(counts[i][0]), static_cast<double>(counts[i][1]),
                     fmt::format("{} → {}", count(counts[i][0]), count(counts[i][1]))});
  }
  return "<h3>Batches by compiled shape (requests × tokens), all replications</h3>\n" +
         fmt::format(fmt::runtime(kKey), "candidate") + pair_chart("batches by compiled shape", pairs);
}

}  // namespace

HtmlTable::HtmlTable(const std::vector<std::string>& heads) {
  out_ = "<div class=\"scroll\"><table><thead><tr>";
  for (const auto& head : heads) out_ += fmt::format("<th>{}</th>", e(head));
  out_ += "</tr></thead><tbody>\n";
}

void HtmlTable::row(const std::vector<std::string>& cells) {
  out_ += "<tr>";
  for (const auto& cell : cells) out_ += fmt::format("<td>{}</td>", cell);
  out_ += "</tr>\n";
}

std::string HtmlTable::text() const { return out_ + "</tbody></table></div>\n"; }

std::string slice_chart(const std::string& title, const std::vector<decide::SliceJudgement>& rows, double margin,
                        bool lower_is_better, const ingest::Scenario& scenario) {
  std::vector<Mark> marks;
  for (const auto& row : rows) {
    if (!row.id.gated) continue;
    const auto& p = row.paired;
    if (!p.valid) {
      marks.push_back({slice_words(row.id, scenario), "no value", std::nan(""), 0, 0, Hue::neutral});
      continue;
    }
    marks.push_back({slice_words(row.id, scenario),
                     fmt::format("{}, {}", signed_percent(p.change_percent), decide::slice_verdict_name(row.verdict)),
                     p.change_percent, p.ci_low, p.ci_high, verdict_hue(row.verdict)});
  }
  const double at = (lower_is_better ? 100 : -100) * margin;
  return mark_chart(title, marks, {{at, "margin " + signed_percent(at)}}, true);
}

std::string limit_chart(const std::string& title, const std::vector<decide::Limit>& baseline,
                        const std::vector<decide::Limit>& other, const std::string& other_name) {
  std::vector<Mark> marks;
  const auto add = [&](const decide::Limit& limit, const std::string& arm, Hue hue) {
    const std::string label = fmt::format("{}, {}", limit.name, arm);
    if (!limit.measured || limit.limit <= 0) {
      marks.push_back({label, limit.measured ? quantity(limit.upper, limit.unit) : "not measured", std::nan(""), 0, 0,
                       Hue::neutral});
      return;
    }
    const double share = 100 * limit.value / limit.limit;
    marks.push_back({label,
                     fmt::format("{}, bound {}: {}", quantity(limit.value, limit.unit),
                                 quantity(limit.upper, limit.unit), limit.met ? "met" : "missed"),
                     share, share, 100 * limit.upper / limit.limit, limit.met ? hue : Hue::bad});
  };
  for (std::size_t i = 0; i < other.size(); ++i) {
    if (i < baseline.size()) add(baseline[i], "baseline", Hue::baseline);
    add(other[i], other_name, Hue::candidate);
  }
  if (marks.empty()) return "";
  return mark_chart(title, marks, {{100, "limit"}}, false);
}

std::string slices_section(const DecisionStudy& study, const Decision& d) {
  const auto& scenario = *study.table.baseline.scenario;
  std::string out = fmt::format(
      "<h2>What changed</h2>\n<p>{} ({} is better). Every slice is gated: each must stay within the margin.",
      e(capital(metric_words(d.metric))), e(d.better));
  if (d.headline.valid) {
    out += fmt::format(" Over all requests {} ({}), 95&#8239;% interval {}.", signed_percent(d.headline.change_percent),
                       from_to(d.headline.baseline, d.headline.candidate, d.unit),
                       interval_percent(d.headline.ci_low, d.headline.ci_high));
  }
  out += "</p>\n" + slice_chart("change by slice", d.slices, d.margin, d.better == "lower", scenario);
  HtmlTable table(
      {"slice", "baseline → candidate", "change", "95 % interval", "p for harm", "pairs", "requests", "verdict"});
  for (const auto& row : d.slices) {
    if (!row.id.gated) continue;
    const auto& p = row.paired;
    const char* verdict = decide::slice_verdict_name(row.verdict);
    table.row({e(slice_words(row.id, scenario)), p.valid ? from_to(p.baseline, p.candidate, d.unit) : "no value",
               p.valid ? signed_percent(p.change_percent) : "", p.valid ? interval_percent(p.ci_low, p.ci_high) : "",
               p.valid ? p_value(p.p) : "", count(p.n), count(p.requests),
               row.verdict == decide::SliceVerdict::harmed ? fmt::format("<span class=\"bad\">{}</span>", verdict)
                                                           : verdict});
  }
  out += table.text();
  if (d.advisory.empty()) return out;
  HtmlTable others({"metric", "load", "baseline → candidate", "change", "95 % interval"});
  for (const auto& row : d.advisory) {
    if (!row.paired.valid) continue;
    const auto& p = row.paired;
    others.row({e(metric_words(row.metric)), e(slice_words(row.id, scenario)),
                from_to(p.baseline, p.candidate, metric_unit(row.metric)), signed_percent(p.change_percent),
                interval_percent(p.ci_low, p.ci_high)});
  }
  return out + "<h3>Other metrics, for information</h3>\n" + others.text();
}

std::string limits_section(const Decision& d) {
  const auto& flight = d.preflight;
  std::string out =
      "<h2>Service limits</h2>\n<p class=\"soft\">Bars are means in percent of the limit; the whisker ends at the "
      "upper bound, which is what is judged.</p>\n";
  out += fmt::format(fmt::runtime(kKey), "candidate");
  out += limit_chart("service limits", d.sla_baseline, d.sla_candidate, "candidate");
  out += fmt::format(
      "<p>Pre-flight of the baseline: {:.0f} requests/s in full batches, device busy {} of the time, offered peak {} "
      "of capacity, largest batch {}",
      flight.capacity_per_s, percent(100 * flight.utilization), percent(100 * flight.peak_utilization),
      quantity(flight.largest_batch_seconds, "s"));
  if (flight.junction_limit)
    out += fmt::format(", {:.1f} °C in steady state at the busiest power (limit {:.1f} °C)", flight.junction_celsius,
                       *flight.junction_limit);
  return out + ".</p>\n";
}

std::string attribution_section(const DecisionStudy& study, const Decision& d) {
  if (d.attribution.shares.empty() && !d.symptom_attribution) return "";
  std::string out = "<h2>Which change did it</h2>\n";
  if (d.symptom_attribution) out += attribution_part(study, *d.symptom_attribution, "Where it hurts");
  if (!d.attribution.shares.empty()) out += attribution_part(study, d.attribution, "Over all requests");
  return out;
}

std::string mechanism_section(const Decision& d) {
  if (d.mechanism.relief.empty()) return "";
  std::string out = fmt::format(
      "<h2>Mechanism</h2>\n<p>{}.</p>\n<p class=\"soft\">Share of the gap between the arms that closes when one "
      "resource is relieved in both of them.</p>\n",
      e(capital(d.mechanism.sentence)));
  constexpr double kNothingPercent = 0.05;  // %: what the chart would print as 0.0
  std::vector<Mark> marks;
  std::string missing;
  std::string idle;
  for (const auto& row : d.mechanism.relief) {
    if (!row.gap_closed_percent) {
      missing += fmt::format("<li>{}: {}</li>", e(row.resource), e(row.why));
      continue;
    }
    std::string label = row.resource;
    if (std::abs(*row.gap_closed_percent) < kNothingPercent && row.resource != d.mechanism.resource) {
      idle += fmt::format("{}{}{}", idle.empty() ? "" : ", ", label, row.frozen ? " (frozen batches)" : "");
      continue;
    }
    if (row.frozen) label += " (frozen batches)";
    std::string text = percent(*row.gap_closed_percent);
    if (row.restores_change) text += ", restores a changed key";
    const bool winner = d.mechanism.identified && row.resource == d.mechanism.resource;
    marks.push_back({label, text, *row.gap_closed_percent, row.ci_low, row.ci_high,
                     winner                ? Hue::good
                     : row.restores_change ? Hue::baseline
                                           : Hue::neutral});
  }
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.value > b.value; });
  out += mark_chart("share of the gap closed by each relief", marks, {}, false);
  if (!idle.empty()) out += fmt::format("<p class=\"soft\">These close nothing: {}.</p>\n", e(idle));
  if (!missing.empty()) out += "<ul>" + missing + "</ul>\n";
  if (!d.triage.quadrant.empty())
    out += fmt::format("<p>Triage: {}; {}.</p>\n", e(d.triage.quadrant), e(d.triage.first));
  return out;
}

std::string machine_section(const DecisionStudy& study) {
  const auto& table = study.table;
  if (!table.baseline.ok() || !table.candidate.ok()) return "";
  return "<h2>Inside the machine</h2>\n" + cycles_part(table) + batches_part(table);
}

}  // namespace plumbline::report
