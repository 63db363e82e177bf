// What the shape-sensitivity report says.
#include <fmt/format.h>

#include <algorithm>

#include "report/charts.h"
#include "report/reuse_report.h"
#include "report/sections.h"
#include "report/words.h"

namespace plumbline::report {
namespace {

using study::Axis;
using study::ModelSensitivity;
using study::SensitivityReport;

std::string value_words(const std::optional<double>& value, const std::string& unit) {
  if (!value) return "–";
  return unit == "1" ? fmt::format("{:.4g}", *value) : quantity(*value, unit);
}

std::string shape_words(const study::SensitivityCell& cell) {
  return cell.sequence > 0 ? fmt::format("{} × {}", cell.batch, cell.sequence) : fmt::format("{}", cell.batch);
}

Section grid_section(const SensitivityReport& report, const ModelSensitivity& model) {
  Section out;
  out.heading = "Grid";
  out.table.columns = {{"batch"}};
  const std::size_t sequences = report.sequences.size();
  for (const auto s : report.sequences)
    out.table.columns.push_back({s > 0 ? fmt::format("sequence {}", s) : "value", true});
  for (std::size_t b = 0; b < report.batches.size(); ++b) {
    std::vector<std::string> cells{std::to_string(report.batches[b])};
    for (std::size_t s = 0; s < sequences; ++s) {
      std::string text = value_words(model.cells[b * sequences + s].value, report.unit);
      for (const auto& cliff : model.cliffs) {
        const bool here = cliff.to.batch == report.batches[b] && cliff.to.sequence == report.sequences[s];
        if (here && text.back() != '*') text += " *";
      }
      cells.push_back(std::move(text));
    }
    out.table.rows.push_back(std::move(cells));
  }
  if (!model.cliffs.empty()) out.paragraphs = {"* a cliff ends here"};
  return out;
}

Section elasticity_section(const ModelSensitivity& model, Axis axis) {
  Section out;
  out.heading = axis == Axis::batch ? "Elasticity in the batch" : "Elasticity in the sequence";
  out.paragraphs = {"Percent of change for one percent more: -1 is shared in full, 0 does not matter, 1 grows along."};
  std::vector<std::int64_t> lines;
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;
  const auto line_of = [&](const study::Elasticity& e) { return axis == Axis::batch ? e.from.sequence : e.from.batch; };
  const auto step_of = [&](const study::Elasticity& e) {
    return axis == Axis::batch ? std::pair(e.from.batch, e.to.batch) : std::pair(e.from.sequence, e.to.sequence);
  };
  for (const auto& e : model.elasticities) {
    if (e.axis != axis) continue;
    if (std::find(lines.begin(), lines.end(), line_of(e)) == lines.end()) lines.push_back(line_of(e));
    if (std::find(steps.begin(), steps.end(), step_of(e)) == steps.end()) steps.push_back(step_of(e));
  }
  if (steps.empty()) return out;
  out.table.columns = {{axis == Axis::batch ? "batch" : "sequence"}};
  for (const auto line : lines) {
    out.table.columns.push_back(
        {line == 0 ? "value" : fmt::format("{} {}", axis == Axis::batch ? "sequence" : "batch", line), true});
  }
  for (const auto& step : steps) {
    std::vector<std::string> cells{fmt::format("{} → {}", step.first, step.second)};
    for (const auto line : lines) {
      std::string text = "–";
      for (const auto& e : model.elasticities) {
        if (e.axis == axis && step_of(e) == step && line_of(e) == line && e.value)
          text = fmt::format("{:.2f}", *e.value + 0.0);
      }
      if (text == "-0.00") text = "0.00";
      cells.push_back(std::move(text));
    }
    out.table.rows.push_back(std::move(cells));
  }
  return out;
}

Section cliffs_section(const SensitivityReport& report, const ModelSensitivity& model) {
  Section out;
  out.heading = "Cliffs";
  if (model.cliffs.empty()) {
    out.paragraphs = {fmt::format("None: no step leaves its trend by more than {}.", percent(100 * report.threshold))};
    return out;
  }
  out.paragraphs = {
      fmt::format("Steps that leave their trend by more than {}; the first step of a line has no trend to leave.",
                  percent(100 * report.threshold))};
  for (const auto& cliff : model.cliffs) {
    std::string text = fmt::format(
        "{} → {}: {} instead of {} ({}, {}), by {} layers, '{}'. {}: {}", shape_words(cliff.from),
        shape_words(cliff.to), value_words(cliff.to.value, report.unit), value_words(cliff.expected, report.unit),
        signed_percent(100 * cliff.jump), cliff.worse ? "worse" : "better", cliff.layer_class, cliff.kernel,
        capital(verdict_words(cliff.cause.kind)), cliff.cause.text);
    for (const auto& cause : cliff.beside)
      text += fmt::format("; beside it {}: {}", verdict_words(cause.kind), cause.text);
    out.points.push_back(std::move(text));
  }
  return out;
}

std::string lines_chart(const SensitivityReport& report, const ModelSensitivity& model) {
  std::vector<Mark> marks;
  for (const auto& cell : model.cells) {
    if (!cell.value) continue;
    marks.push_back(
        {shape_words(cell), value_words(cell.value, report.unit), *cell.value, *cell.value, *cell.value, Hue::neutral});
  }
  return mark_chart(metric_words(report.metric), marks, {}, false);
}

Document sensitivity_document(const SensitivityReport& report) {
  Document out;
  out.title = fmt::format("Shape sensitivity of {}: {}", metric_words(report.metric), report.scenario);
  Section head;
  head.heading = "";
  head.paragraphs = {"Every shape is compiled exactly and alone, so its residency is its own."};
  if (!report.note.empty()) head.paragraphs.push_back(capital(report.note) + ".");
  out.sections.push_back(std::move(head));
  for (const auto& model : report.models) {
    const auto add = [&](Section section) {
      if (report.models.size() > 1) section.heading = model.model + ": " + section.heading;
      out.sections.push_back(std::move(section));
    };
    Section grid = grid_section(report, model);
    grid.charts = {lines_chart(report, model)};
    add(std::move(grid));
    for (const Axis axis : {Axis::batch, Axis::sequence}) {
      Section rows = elasticity_section(model, axis);
      if (!rows.table.columns.empty()) add(std::move(rows));
    }
    add(cliffs_section(report, model));
  }
  return out;
}

}  // namespace

std::string sensitivity_text(const SensitivityReport& report) { return text_of(sensitivity_document(report)); }
std::string sensitivity_markdown(const SensitivityReport& report) { return markdown_of(sensitivity_document(report)); }
std::string sensitivity_html(const SensitivityReport& report) { return page_of(sensitivity_document(report)); }

}  // namespace plumbline::report
