// The terminal summary: what happened, who, why, what to do, in that order.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/decision_report.h"
#include "report/plain.h"
#include "report/words.h"

namespace plumbline::report {
namespace {

using decide::Decision;
using study::DecisionStudy;

enum class Tone { plain, bold, good, warning, bad, faint };

constexpr int kLabelWidth = 10;  // columns of the labels on the left
constexpr int kLeastWidth = 60;

class Screen {
 public:
  Screen(bool colour, int width) : colour_(colour), width_(std::max(width, kLeastWidth)) {}

  /// "Label     text", wrapped under itself.
  void row(std::string_view label, std::string_view text, Tone tone = Tone::plain) {
    const auto lines = wrap(one_line(text), static_cast<std::size_t>(width_ - kLabelWidth));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::string name = i == 0 ? std::string(label) : "";
      out_ += paint(name, Tone::bold) + std::string(static_cast<std::size_t>(kLabelWidth) - name.size(), ' ');
      out_ += paint(lines[i], tone) + "\n";
    }
  }
  void line(std::string_view text, Tone tone) { out_ += paint(one_line(text), tone) + "\n"; }
  void blank() { out_ += "\n"; }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  [[nodiscard]] std::string paint(const std::string& text, Tone tone) const {
    constexpr const char* kCodes[] = {"", "1", "32;1", "33;1", "31;1", "2"};  // ECMA-48 select graphic rendition
    const char* code = kCodes[static_cast<int>(tone)];
    if (!colour_ || *code == '\0' || text.empty()) return text;
    return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
  }

  // Columns of a text: code points, all of ours being one column wide.
  static std::size_t columns(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  }

  // Whether a break between the words would part a number from its unit.
  static bool belongs(std::string_view number, std::string_view unit) {
    constexpr std::string_view kUnits[] = {"%", "B",  "kB", "MB", "GB", "ns", "µs", "ms",
                                           "s", "pJ", "nJ", "µJ", "mJ", "J",  "/s", "/J"};
    while (!unit.empty() && std::string_view(",.;:)").find(unit.back()) != std::string_view::npos)
      unit.remove_suffix(1);
    const bool digit = !number.empty() && number.back() >= '0' && number.back() <= '9';
    return digit && std::find(std::begin(kUnits), std::end(kUnits), unit) != std::end(kUnits);
  }

  // Breaks at spaces; a word longer than the line stays whole, so that commands copy.
  static std::vector<std::string> wrap(const std::string& text, std::size_t room) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      const std::string word = text.substr(at, end - at);
      at = end + 1;
      if (word.empty()) continue;
      if (!words.empty() && belongs(words.back(), word)) {
        words.back() += " " + word;
      } else {
        words.push_back(word);
      }
    }
    std::vector<std::string> out(1);
    for (const auto& word : words) {
      if (!out.back().empty() && columns(out.back()) + 1 + columns(word) > room) out.emplace_back();
      out.back() += (out.back().empty() ? "" : " ") + word;
    }
    return out;
  }

  bool colour_;
  int width_;
  std::string out_;
};

Tone verdict_tone(decide::Verdict verdict) {
  constexpr Tone kTones[] = {Tone::good, Tone::warning, Tone::bad, Tone::bad};
  return kTones[static_cast<int>(verdict)];
}

void add_verdict(const DecisionStudy& study, const Decision& d, Screen& screen) {
  struct Meaning {
    const char* word;
    const char* sentence;
  };
  constexpr Meaning kMeanings[] = {{"RELEASE", "the candidate may go out"},
                                   {"RELEASE WITH GUARDRAILS", "the candidate may go out, watched"},
                                   {"HOLD", "do not release the candidate"},
                                   {"ROLL BACK", "the candidate is live and does harm: take it back"}};
  const auto& meaning = kMeanings[static_cast<int>(d.verdict)];
  screen.line(fmt::format("{}: {}", meaning.word, meaning.sentence), verdict_tone(d.verdict));
  screen.line(fmt::format("{} against {}", study.table.candidate_path, study.table.baseline_path), Tone::faint);
}

// What the gate found when it found no harm.
std::string no_symptom_sentence(const Decision& d) {
  std::size_t gated = 0;
  std::size_t passed = 0;
  for (const auto& row : d.slices) {
    if (!row.id.gated) continue;
    ++gated;
    if (row.verdict == decide::SliceVerdict::pass) ++passed;
  }
  if (passed == gated) {
    const std::string where = gated == 1 ? "the one gated slice" : fmt::format("each of the {} gated slices", gated);
    return fmt::format("{} stays within {} on {}", metric_words(d.metric), percent(100 * d.margin), where);
  }
  return fmt::format("no harm is shown, but {} of {} gated slices are not decided", gated - passed, gated);
}

void add_symptom(const DecisionStudy& study, const Decision& d, Screen& screen) {
  const auto& scenario = *study.table.baseline.scenario;
  const bool harmful = d.symptom.harmful && d.symptom_paired && d.symptom_paired->valid;
  if (harmful) {
    screen.row("Found", symptom_sentence(d, scenario), Tone::bold);
  } else if (d.headline.valid) {
    screen.row("Found", no_symptom_sentence(d), Tone::bold);
  }
  if (d.headline.valid) {
    const bool same_metric = d.symptom.metric == d.metric;
    const bool hidden = harmful && same_metric && d.headline.harm_mean <= d.margin;
    screen.row("", fmt::format("over all requests {}{} ({}){}", same_metric ? "" : metric_words(d.metric) + " ",
                               signed_percent(d.headline.change_percent),
                               from_to(d.headline.baseline, d.headline.candidate, d.unit),
                               hidden ? ": the mean hides the harm" : ""));
  }
  // Harmed slices are told above, advice is in decision.md; what else holds the release stands here.
  constexpr std::size_t kMostReasons = 4;
  const bool no = d.verdict == decide::Verdict::hold || d.verdict == decide::Verdict::roll_back;
  std::size_t shown = 0;
  for (const auto& reason : d.reasons) {
    if (no && (reason.starts_with(d.metric + " is worse") || reason.ends_with("(advisory)"))) continue;
    if (!no && reason.starts_with(d.metric + " is within")) continue;
    if (++shown > kMostReasons) break;
    screen.row(shown == 1 ? (no ? "Reasons" : "Beside") : "", plain_words(reason, d, scenario));
  }
}

void add_changes(const DecisionStudy& study, const Decision& d, Screen& screen) {
  const auto& attribution = d.symptom_attribution ? *d.symptom_attribution : d.attribution;
  bool first = true;
  for (const std::size_t i : changes_by_harm(study.table, d)) {
    const auto& change = study.table.changes[i];
    const bool guilty = change.id == d.first_failing_change;
    screen.row(first ? (d.first_failing_change.empty() ? "Changes" : "Cause") : "",
               change_sentence(change, attribution, guilty), guilty ? Tone::bold : Tone::plain);
    first = false;
  }
  if (d.first_failing_stage != "none") screen.row("", "first failing stage: " + stage_sentence(d));
}

void add_mechanism(const Decision& d, Screen& screen) {
  if (!d.symptom.harmful) return;
  if (!d.mechanism.identified) {
    screen.row("Mechanism", "not identified: " + d.mechanism.sentence);
    return;
  }
  screen.row("Mechanism", fmt::format("{}, confidence {}: {}", metric_words(d.bottleneck.name),
                                      percent(100 * d.bottleneck.confidence), d.mechanism.sentence));
}

void add_fix(const DecisionStudy& study, const Decision& d, Screen& screen) {
  const auto& scenario = *study.table.baseline.scenario;
  if (const auto* wrong = tempting_wrong_fix(d)) {
    screen.row("Not this",
               fmt::format("{}: {}", title_of(study.table, wrong->id), plain_words(wrong->why, d, scenario)),
               Tone::warning);
  }
  if (!d.fix) {
    if (d.symptom.harmful) screen.row("Fix", "none: " + d.fix_why);
    return;
  }
  const auto& fix = *d.fix;
  screen.row("Fix", fmt::format("{} ({}, {}):", fix.title, fix.stage, fix.owner.empty() ? "no owner named" : fix.owner),
             Tone::good);
  screen.row("", ingest::flow_text(fix.patch), Tone::good);
  screen.row("", fmt::format("recovers {} ({}) on fresh seeds; the verdict with it: {}; rollback {}",
                             percent(fix.recovers_percent), interval_percent(fix.ci_low, fix.ci_high),
                             verdict_words(decide::verdict_name(fix.verdict)),
                             fix.rollback_proven ? "proven by hash" : "not proven"));
}

void add_service(const Decision& d, Screen& screen) {
  std::string limits;
  for (const auto& limit : d.sla_candidate) {
    limits += fmt::format("{}{} {} of {} {}", limits.empty() ? "" : ", ", limit.name,
                          limit.measured ? quantity(limit.upper, limit.unit) : "not measured",
                          quantity(limit.limit, limit.unit), limit.met ? "met" : "MISSED");
  }
  const bool met = std::all_of(d.sla_candidate.begin(), d.sla_candidate.end(), [](const auto& l) { return l.met; });
  if (!limits.empty()) screen.row("Limits", limits + " (upper bounds)", met ? Tone::plain : Tone::bad);
  screen.row("Quality",
             d.quality.how == "identity" ? "carries over by identity: every output bit is the same"
                                         : d.quality.how + ": " + d.quality.detail,
             d.quality.satisfied ? Tone::plain : Tone::bad);
}

void add_next(const DecisionStudy& study, const Decision& d, Screen& screen) {
  bool first = true;
  for (const auto& step : next_steps(study.table, d, study.table.pack_path)) {
    screen.row(first ? "Next" : "", step);
    first = false;
  }
  const std::string& pack = study.table.pack_path;
  if (!pack.empty())
    screen.row("Report", fmt::format("{0}/report.html, {0}/decision.md, {0}/trace.perfetto.json", pack));
  screen.row("",
             fmt::format("{} pairs, {} configurations, {} requests simulated, seed {}", study.table.seeds.size(),
                         count(d.configurations), count(d.requests_simulated), d.seed),
             Tone::faint);
}

}  // namespace

std::string decision_text(const DecisionStudy& study, const Decision& decision, bool colour, int width) {
  Screen screen(colour, width);
  add_verdict(study, decision, screen);
  screen.blank();
  add_symptom(study, decision, screen);
  add_changes(study, decision, screen);
  add_mechanism(decision, screen);
  add_fix(study, decision, screen);
  add_service(decision, screen);
  screen.blank();
  add_next(study, decision, screen);
  return screen.take();
}

}  // namespace plumbline::report
