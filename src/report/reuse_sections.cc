// What the reuse report says, in order; the renderers are in sections.cc.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/charts.h"
#include "report/reuse_report.h"
#include "report/sections.h"
#include "report/words.h"

namespace plumbline::report {
namespace {

using study::ReuseArm;
using study::ReuseReport;
using study::ReuseRow;
using study::ReuseShape;

constexpr std::string_view kNone = "–";

std::string number(const std::optional<double>& value) {
  if (!value) return std::string(kNone);
  return fmt::format("{:.{}f}", *value, *value >= 100 ? 0 : *value >= 10 ? 1 : 2);
}
std::string share(const std::optional<double>& value) { return value ? percent(100 * *value) : std::string(kNone); }
std::string bytes(double value) { return quantity(value, "B"); }

std::string rate(double bytes_per_second) { return quantity(bytes_per_second, "B") + "/s"; }

std::string shape_words(std::int64_t batch, std::int64_t sequence) {
  return sequence > 0 ? fmt::format("{} × {}", batch, sequence) : fmt::format("{}", batch);
}

std::string class_words(const std::string& name) { return name.empty() ? "all layers" : name; }

std::string level_words(const ReuseArm& arm, int level) {
  const auto l = static_cast<std::size_t>(level);
  return l < arm.levels.size() ? arm.levels[l] : "MACs";
}

std::string_view tensor_words(lower::Role role) {
  switch (role) {
    case lower::Role::weights:
      return "weights";
    case lower::Role::stationary_activations:
      return "held activations";
    case lower::Role::inputs:
      return "inputs";
    case lower::Role::outputs:
      return "outputs and sums";
  }
  return "";
}

std::string model_prefix(const ReuseArm& arm, std::size_t model) {
  return arm.models.size() > 1 ? arm.models[model] + " " : "";
}

std::optional<double> link_limit(const ReuseArm& arm, int level) {
  for (const auto& port : arm.shapes.front().total.ports) {
    if (port.level == level && port.read_limit) return *port.read_limit * arm.clock.frequency.raw();
  }
  return std::nullopt;
}

std::string of_link(double bytes_per_second, const std::optional<double>& limit) {
  return limit ? percent(100 * bytes_per_second / *limit) : std::string(kNone);
}

double bandwidth(const ReuseArm& arm, const ReuseRow& row, std::int64_t moved) {
  return row.cycles > 0 ? static_cast<double>(moved) / static_cast<double>(row.cycles) * arm.clock.frequency.raw() : 0;
}

bool has_weights(const ReuseRow& row) { return row.unique_weight_bytes > 0; }

/// The shape in which most batches ran; the largest when nothing ran.
const ReuseShape& usual_shape(const ReuseArm& arm) {
  std::size_t best = arm.shapes.size() - 1;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < arm.shapes.size(); ++i) {
    std::int64_t batches = 0;
    for (const auto& row : arm.stale ? arm.stale->rows : std::vector<study::StaleRow>{}) {
      if (row.formed.model == arm.shapes[i].model && row.bucket_batch == arm.shapes[i].batch &&
          row.bucket_sequence == arm.shapes[i].sequence) {
        batches += row.formed.batches;
      }
    }
    if (batches > most) {
      most = batches;
      best = i;
    }
  }
  return arm.shapes[best];
}

/// The shapes shown in detail: the usual one and the largest of its model.
std::vector<const ReuseShape*> shown_shapes(const ReuseArm& arm) {
  std::vector<const ReuseShape*> out{&usual_shape(arm)};
  if (&arm.shapes.back() != out.front()) out.push_back(&arm.shapes.back());
  return out;
}

std::string shape_title(const ReuseArm& arm, const ReuseShape& shape) {
  return model_prefix(arm, shape.model) + shape_words(shape.batch, shape.sequence);
}

// ---- sections of one arm
// ---------------------------------------------------------------------------------------------

/// On the terminal the classes of the shown shapes only; `full` lists every shape's.
Section weights_section(const ReuseArm& arm, bool full) {
  Section out;
  out.heading = "Layer classes by shape: weight movement, reuse and residency";
  const auto array = link_limit(arm, arm.weight_link);
  const auto chip = link_limit(arm, arm.off_chip);
  out.paragraphs.push_back(fmt::format(
      "Bytes are per inference of a full batch. Bandwidth is the mean over the busy time of the class, against the "
      "read "
      "limit of '{}' ({}){}.",
      level_words(arm, arm.weight_link), array ? rate(*array) : "unlimited",
      arm.off_chip < 0
          ? ""
          : fmt::format(" and of '{}' ({})", level_words(arm, arm.off_chip), chip ? rate(*chip) : "unlimited")));
  out.table.columns = {
      {"shape"},          {"class"},          {"off array", true},  {"bandwidth", true}, {"of link", true},
      {"off chip", true}, {"of link", true},  {"reuse", true},      {"ideal", true},     {"efficiency", true},
      {"resident", true}, {"stranded", true}, {"inter-inf.", true}, {"feeder", true}};
  for (const auto& shape : arm.shapes) {
    const auto add = [&](const ReuseRow& row) {
      const double batch = static_cast<double>(shape.batch);
      const double inward = bandwidth(arm, row, row.movement.off_array_weight);
      const double off_chip = bandwidth(arm, row, row.movement.off_chip_weight);
      out.table.rows.push_back({shape_title(arm, shape), class_words(row.layer_class),
                                bytes(static_cast<double>(row.movement.off_array_weight) / batch), rate(inward),
                                of_link(inward, array),
                                bytes(static_cast<double>(row.movement.off_chip_weight) / batch),
                                of_link(off_chip, chip), number(row.achieved_reuse()), number(row.ideal_reuse()),
                                share(row.reuse_efficiency()), share(row.residency()), share(row.stranded_share()),
                                share(row.inter_inference_residency()), share(row.feeder_utilization())});
    };
    add(shape.total);
    const auto shown = shown_shapes(arm);
    if (!full && std::find(shown.begin(), shown.end(), &shape) == shown.end()) continue;
    for (const auto& row : shape.classes) {
      if (has_weights(row) || row.array_cycles > 0) add(row);
    }
  }
  return out;
}

Section stranded_section(const ReuseArm& arm) {
  Section out;
  out.heading = "Stranded weight by cause";
  out.paragraphs = {
      "PE-cycles in which a weight that will still be used waits for an activation, in percent of all busy "
      "PE-cycles of the class."};
  std::set<std::size_t> causes;
  for (const auto& shape : arm.shapes) {
    for (std::size_t c = 0; c < execute::kCycleClasses; ++c) {
      if (shape.total.stranded[c] > 0) causes.insert(c);
    }
  }
  out.table.columns = {{"shape"}, {"class"}, {"held", true}, {"stranded", true}};
  for (const std::size_t c : causes) out.table.columns.push_back({metric_words(execute::kCycleClassNames[c]), true});
  for (const ReuseShape* shape : shown_shapes(arm)) {
    const auto add = [&](const ReuseRow& row) {
      if (row.held == 0) return;
      const auto part = [&](std::int64_t n) {
        return share(static_cast<double>(n) / static_cast<double>(row.pe_cycles));
      };
      std::vector<std::string> cells{shape_title(arm, *shape), class_words(row.layer_class), part(row.held),
                                     part(row.stranded_total())};
      for (const std::size_t c : causes) cells.push_back(part(row.stranded[c]));
      out.table.rows.push_back(std::move(cells));
    };
    add(shape->total);
    for (const auto& row : shape->classes) add(row);
  }
  return out;
}

Section mix_section(const ReuseArm& arm) {
  Section out;
  out.heading = "Dataflow cost mix";
  out.paragraphs = {"Bytes read and written just outside the array, by tensor."};
  out.table.columns = {{"shape"},
                       {"class"},
                       {"all bytes", true},
                       {"weights", true},
                       {"held activations", true},
                       {"activations", true},
                       {"sums", true}};
  for (const ReuseShape* shape : shown_shapes(arm)) {
    Stack stack;
    stack.parts = {"weights", "held activations", "activations", "partial sums"};
    const auto add = [&](const ReuseRow& row) {
      const auto all = static_cast<double>(row.off_array_bytes());
      if (all == 0) return;
      const auto& m = row.movement;
      const std::vector<double> parts{static_cast<double>(m.off_array_weight),
                                      static_cast<double>(m.off_array_stationary),
                                      static_cast<double>(m.off_array_activation), static_cast<double>(m.psum)};
      std::vector<std::string> cells{shape_title(arm, *shape), class_words(row.layer_class), bytes(all)};
      for (const double part : parts) cells.push_back(percent(100 * part / all));
      out.table.rows.push_back(std::move(cells));
      stack.rows.push_back(class_words(row.layer_class));
      stack.values.push_back(parts);
    };
    add(shape->total);
    for (const auto& row : shape->classes) add(row);
    out.charts.push_back(stack_chart("dataflow cost mix at " + shape_title(arm, *shape), stack));
  }
  return out;
}

Section network_section(const ReuseArm& arm) {
  Section out;
  out.heading = "Network traffic mix and reuse-factor map";
  out.paragraphs = {
      "Per batch, all layers. A word that is multicast counts once at the outer end and once per receiver at the inner "
      "end; spatial reuse is the quotient. Temporal reuse of a level is words served inward over words that arrived "
      "(outputs: sums taken in over words passed outward)."};
  const bool hops = std::any_of(arm.shapes.front().total.links.begin(), arm.shapes.front().total.links.end(),
                                [](const auto& flow) { return flow.byte_hops.has_value(); });
  out.table.columns = {{"shape"},
                       {"from"},
                       {"to"},
                       {"tensor"},
                       {"bytes", true},
                       {"of all", true},
                       {"spatial reuse", true},
                       {"temporal reuse of the outer level", true}};
  if (hops) out.table.columns.push_back({"bytes × hops", true});
  for (const ReuseShape* shape : shown_shapes(arm)) {
    // What a processing element reads of its own registers crosses no network.
    const auto array = static_cast<int>(arm.levels.size()) - 1;
    double all = 0;
    for (const auto& flow : shape->total.links) {
      if (flow.outer < array) all += static_cast<double>(flow.bytes);
    }
    for (const auto& flow : shape->total.links) {
      std::optional<double> temporal;
      for (const auto& level : shape->total.levels) {
        if (level.level == flow.outer && level.tensor == flow.tensor) temporal = level.temporal_reuse();
      }
      std::vector<std::string> cells{
          shape_title(arm, *shape),
          level_words(arm, flow.outer),
          level_words(arm, flow.inner),
          std::string(tensor_words(flow.tensor)),
          bytes(static_cast<double>(flow.bytes)),
          all > 0 && flow.outer < array ? percent(100 * static_cast<double>(flow.bytes) / all) : std::string(kNone),
          number(flow.spatial_reuse()),
          number(temporal)};
      if (hops) cells.push_back(flow.byte_hops ? bytes(static_cast<double>(*flow.byte_hops)) : std::string(kNone));
      out.table.rows.push_back(std::move(cells));
    }
  }
  return out;
}

Section ports_section(const ReuseArm& arm) {
  Section out;
  out.heading = "Load of the levels' ports";
  out.table.columns = {{"shape"},
                       {"level"},
                       {"read", true},
                       {"of limit", true},
                       {"written", true},
                       {"of limit", true},
                       {"weights", true},
                       {"held activations", true},
                       {"activations", true},
                       {"sums", true}};
  for (const ReuseShape* shape : shown_shapes(arm)) {
    const auto cycles = static_cast<double>(shape->total.cycles);
    for (const auto& port : shape->total.ports) {
      const auto load = [&](std::int64_t n, const std::optional<double>& limit) {
        return limit && cycles > 0 ? percent(100 * static_cast<double>(n) / (*limit * cycles)) : std::string(kNone);
      };
      const auto b = [](std::int64_t n) { return bytes(static_cast<double>(n)); };
      out.table.rows.push_back({shape_title(arm, *shape), level_words(arm, port.level), b(port.read_bytes),
                                load(port.read_bytes, port.read_limit), b(port.write_bytes),
                                load(port.write_bytes, port.write_limit), b(port.weight_bytes),
                                b(port.stationary_bytes), b(port.activation_bytes), b(port.psum_bytes)});
    }
  }
  return out;
}

/// Steps of occupancy over the instances, with the capacity as a line.
std::string profile_chart(const std::string& title, const study::BufferPressure& buffer) {
  constexpr double kWidth = 860;  // user units; the page scales them
  constexpr double kHeight = 110;
  constexpr double kTop = 16;
  const double most = static_cast<double>(std::max<std::int64_t>({buffer.peak, buffer.capacity.value_or(0), 1}));
  const auto y = [&](std::int64_t n) { return kTop + (kHeight - kTop) * (1 - static_cast<double>(n) / most); };
  std::string out = fmt::format(R"(<svg viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}"><title>{}</title>)",
                                kWidth, kHeight + 4, escape_html(one_line(title)), escape_html(one_line(title)));
  const double step = kWidth / static_cast<double>(std::max<std::size_t>(1, buffer.occupancy.size()));
  std::string path = fmt::format("M0 {:.1f}", kHeight);
  for (std::size_t i = 0; i < buffer.occupancy.size(); ++i) {
    path += fmt::format("V{:.1f}H{:.1f}", y(buffer.occupancy[i]), step * static_cast<double>(i + 1));
  }
  out += fmt::format(R"(<path class="neutral" d="{}V{:.1f}Z"/>)", path, kHeight);
  if (buffer.capacity) {
    out += fmt::format(R"(<path class="rule" d="M0 {0:.1f}H{1:.0f}"/><text class="rule" x="0" y="{2:.1f}">{3}</text>)",
                       y(*buffer.capacity), kWidth, y(*buffer.capacity) - 4,
                       escape_html("capacity " + bytes(static_cast<double>(*buffer.capacity))));
  }
  return out + "</svg>\n";
}

Section buffers_section(const ReuseArm& arm) {
  Section out;
  out.heading = "Buffer pressure";
  out.paragraphs = {"Bytes on chip while each kernel runs, in order of execution; pinned weights included."};
  out.table.columns = {{"shape"},
                       {"buffer"},
                       {"capacity", true},
                       {"peak", true},
                       {"of capacity", true},
                       {"time-weighted", true},
                       {"pinned", true},
                       {"spilled", true}};
  for (const auto& shape : arm.shapes) {
    for (const auto& buffer : shape.buffers) {
      const auto b = [](std::int64_t n) { return bytes(static_cast<double>(n)); };
      out.table.rows.push_back(
          {shape_title(arm, shape), level_words(arm, buffer.level), buffer.capacity ? b(*buffer.capacity) : "unbounded",
           b(buffer.peak),
           buffer.capacity && *buffer.capacity > 0
               ? percent(100 * static_cast<double>(buffer.peak) / static_cast<double>(*buffer.capacity))
               : std::string(kNone),
           bytes(buffer.time_weighted), b(buffer.pinned), b(buffer.spilled)});
    }
  }
  for (const ReuseShape* shape : shown_shapes(arm)) {
    for (const auto& buffer : shape->buffers) {
      out.charts.push_back(
          profile_chart(fmt::format("{} at {}", level_words(arm, buffer.level), shape_title(arm, *shape)), buffer));
    }
  }
  return out;
}

Section loads_section(const ReuseArm& arm, bool full) {
  Section out;
  out.heading = "At the operating point";
  const auto array = link_limit(arm, arm.weight_link);
  const auto chip = link_limit(arm, arm.off_chip);
  const auto say = [&](std::string_view what, const study::PointBandwidth& point, const std::optional<double>& limit) {
    return fmt::format(
        "{}: {} while busy ({} of the link), {} over the whole run, at most {} in {} ms ({} of the link)", what,
        rate(point.mean_busy), of_link(point.mean_busy, limit), rate(point.mean_span), rate(point.peak),
        study::kPeakWindowNs / 1'000'000, of_link(point.peak, limit));
  };
  out.paragraphs = {fmt::format("{} replications.", arm.point.seeds.size())};
  out.points = {say("off-array weight bandwidth", arm.point.off_array_weight, array)};
  if (arm.off_chip >= 0) out.points.push_back(say("off-chip weight bandwidth", arm.point.off_chip_weight, chip));
  for (const auto& row : arm.reuse) {
    if (!row.layer_class.empty()) continue;
    const double issued = static_cast<double>(std::max<std::int64_t>(1, row.padded_weight_macs));
    out.points.push_back(fmt::format(
        "{}achieved weight reuse {} useful MACs per element ({} of the MACs issued with weights are useful)",
        model_prefix(arm, row.model), number(row.achieved_reuse()),
        percent(100 * static_cast<double>(row.useful_weight_macs) / issued)));
  }
  out.table.columns = {{"load"},
                       {"requests"},
                       {"class"},
                       {"completed", true},
                       {"off array per inference", true},
                       {"off chip per inference", true}};
  for (const auto& row : arm.loads) {
    if (!full && !row.layer_class.empty()) continue;
    const double completed = static_cast<double>(row.completed);
    out.table.rows.push_back({row.load, model_prefix(arm, row.model) + row.profile, class_words(row.layer_class),
                              count(row.completed), bytes(static_cast<double>(row.off_array_weight) / completed),
                              bytes(static_cast<double>(row.off_chip_weight) / completed)});
  }
  return out;
}

Section stale_section(const ReuseArm& arm) {
  Section out;
  out.heading = "Stale mappings: what the compiled buckets lose on the shapes that came";
  if (!arm.stale) {
    out.paragraphs = {"Not measured: " + arm.stale_why + "."};
    return out;
  }
  const auto& stale = *arm.stale;
  out.paragraphs = {fmt::format(
      "Per batch, in the compiler's objective {}. Padding: the bucket as it ran less the true shape under the same "
      "mappings. Stale mapping: that less the best for the true shape. Weights stay pinned as they are.",
      stale.objective)};
  out.table.columns = {{"true shape"},
                       {"bucket"},
                       {"batches", true},
                       {"padding", true},
                       {"stale mapping", true},
                       {"cycles: padded", true},
                       {"same mapping", true},
                       {"best", true},
                       {"off-array weights: same mapping", true},
                       {"best", true}};
  for (const auto& row : stale.rows) {
    const double best = row.best.objective(stale.objective, arm.clock);
    const auto of_best = [&](const std::optional<double>& cost) {
      return cost && best > 0 ? signed_percent(100 * *cost / best) : std::string(kNone);
    };
    out.table.rows.push_back({model_prefix(arm, row.formed.model) + shape_words(row.formed.size, row.formed.sequence),
                              shape_words(row.bucket_batch, row.bucket_sequence), count(row.formed.batches),
                              of_best(row.padding_cost(stale.objective, arm.clock)),
                              of_best(row.stale_cost(stale.objective, arm.clock)), count(row.padded.cycles),
                              row.stale ? count(row.stale->cycles) : std::string(kNone), count(row.best.cycles),
                              row.stale ? bytes(static_cast<double>(row.stale->off_array_weight)) : std::string(kNone),
                              bytes(static_cast<double>(row.best.off_array_weight))});
  }
  return out;
}

// ---- both arms
// -------------------------------------------------------------------------------------------------------

Section flags_section(const ReuseReport& report) {
  Section out;
  out.heading = "Where reuse rose and movement rose too";
  if (report.flags.empty()) {
    out.paragraphs = {"Nowhere: wherever weights are reused more, fewer of their bytes move per inference."};
    return out;
  }
  out.paragraphs = {
      "Here a higher reuse is no progress: it comes of more work per inference, not of fewer weights moved."};
  constexpr std::string_view kSteps[] = {"larger batch", "longer sequence", "candidate"};
  out.table.columns = {{"step"}, {"class"}, {"from"}, {"to"}, {"reuse", true}, {"bytes per inference", true}};
  for (const auto& flag : report.flags) {
    out.table.rows.push_back({std::string(kSteps[static_cast<std::size_t>(flag.step)]),
                              model_prefix(report.baseline, flag.model) + class_words(flag.layer_class),
                              shape_words(flag.batch_from, flag.sequence_from),
                              shape_words(flag.batch_to, flag.sequence_to),
                              fmt::format("{} → {}", number(flag.reuse_from), number(flag.reuse_to)),
                              from_to(flag.bytes_from, flag.bytes_to, "B")});
  }
  return out;
}

const ReuseRow* same_row(const ReuseArm& arm, const ReuseShape& shape, const ReuseRow& row) {
  for (const auto& other : arm.shapes) {
    if (other.model != shape.model || other.batch != shape.batch || other.sequence != shape.sequence) continue;
    if (row.layer_class.empty()) return &other.total;
    for (const auto& found : other.classes) {
      if (found.layer_class == row.layer_class) return &found;
    }
  }
  return nullptr;
}

Section arms_section(const ReuseReport& report) {
  const ReuseArm& a = report.baseline;
  const ReuseArm& b = *report.candidate;
  Section out;
  out.heading = "Baseline against candidate";
  const auto limit = link_limit(a, a.weight_link);
  const auto say = [](std::string_view what, double x, double y) {
    return fmt::format("{}: {}/s{}", what, from_to(x, y, "B"), x > 0 ? ", " + signed_percent(100 * (y / x - 1)) : "");
  };
  const auto bands = [&](std::string_view what, const study::PointBandwidth& x, const study::PointBandwidth& y) {
    out.points.push_back(say(fmt::format("{} weight bandwidth while busy", what), x.mean_busy, y.mean_busy));
    out.points.push_back(say(fmt::format("{} weight bandwidth at its peak", what), x.peak, y.peak));
  };
  bands("off-array", a.point.off_array_weight, b.point.off_array_weight);
  if (a.off_chip >= 0 && b.off_chip >= 0) bands("off-chip", a.point.off_chip_weight, b.point.off_chip_weight);
  if (limit) out.points.push_back(fmt::format("the limit of '{}' is {}", level_words(a, a.weight_link), rate(*limit)));
  for (const auto& row : a.loads) {
    if (!row.layer_class.empty()) continue;
    for (const auto& other : b.loads) {
      if (other.model != row.model || !other.layer_class.empty() || other.load != row.load ||
          other.profile != row.profile)
        continue;
      const auto change = [&](std::int64_t from, std::int64_t to) {
        const double x = static_cast<double>(from) / static_cast<double>(row.completed);
        const double y = static_cast<double>(to) / static_cast<double>(other.completed);
        return from_to(x, y, "B") + (x > 0 ? fmt::format(" ({})", signed_percent(100 * (y / x - 1))) : "");
      };
      out.points.push_back(fmt::format("{}{} load, {} requests, per inference: {} off array, {} off chip",
                                       model_prefix(a, row.model), row.load, row.profile,
                                       change(row.off_array_weight, other.off_array_weight),
                                       change(row.off_chip_weight, other.off_chip_weight)));
    }
  }
  out.table.columns = {{"shape"},
                       {"class"},
                       {"off array per inference", true},
                       {"", true},
                       {"off chip per inference", true},
                       {"reuse", true},
                       {"resident", true},
                       {"feeder", true}};
  std::size_t same = 0;
  for (const auto& shape : a.shapes) {
    const auto add = [&](const ReuseRow& row) {
      const ReuseRow* other = same_row(b, shape, row);
      if (other == nullptr || !has_weights(row)) return;
      if (row.movement == other->movement && row.weight_elements_in == other->weight_elements_in &&
          row.cycles == other->cycles) {
        ++same;
        return;
      }
      const double batch = static_cast<double>(shape.batch);
      const double x = static_cast<double>(row.movement.off_array_weight) / batch;
      const double y = static_cast<double>(other->movement.off_array_weight) / batch;
      out.table.rows.push_back({shape_title(a, shape), class_words(row.layer_class), from_to(x, y, "B"),
                                x > 0 ? signed_percent(100 * (y / x - 1)) : "",
                                from_to(static_cast<double>(row.movement.off_chip_weight) / batch,
                                        static_cast<double>(other->movement.off_chip_weight) / batch, "B"),
                                number(row.achieved_reuse()) + " → " + number(other->achieved_reuse()),
                                share(row.residency()) + " → " + share(other->residency()),
                                share(row.feeder_utilization()) + " → " + share(other->feeder_utilization())});
    };
    add(shape.total);
    for (const auto& row : shape.classes) add(row);
  }
  if (out.table.rows.empty()) out.table.columns.clear();
  out.paragraphs = {fmt::format("Shapes compiled in both; {} rows are the same and left out.", same)};
  return out;
}

void add_arm(const ReuseArm& arm, const std::string& prefix, bool full, Document& out) {
  const auto add = [&](Section section) {
    section.heading = prefix + section.heading;
    out.sections.push_back(std::move(section));
  };
  add(weights_section(arm, full));
  add(loads_section(arm, full));
  add(stranded_section(arm));
  add(mix_section(arm));
  add(network_section(arm));
  if (full) add(ports_section(arm));
  add(buffers_section(arm));
  add(stale_section(arm));
}

/// `full`: both arms in every detail; else what fits a terminal.
Document reuse_document(const ReuseReport& report, bool full) {
  Document out;
  out.title = fmt::format("Reuse and bandwidth: {}", report.baseline.name);
  if (report.candidate) {
    out.title += fmt::format(" against {}", report.candidate->name);
    out.sections.push_back(arms_section(report));
  }
  out.sections.push_back(flags_section(report));
  if (full || !report.candidate) add_arm(report.baseline, report.candidate ? "Baseline: " : "", full, out);
  if (full && report.candidate) add_arm(*report.candidate, "Candidate: ", full, out);
  return out;
}

}  // namespace

std::string reuse_text(const ReuseReport& report) { return text_of(reuse_document(report, false)); }
std::string reuse_markdown(const ReuseReport& report) { return markdown_of(reuse_document(report, true)); }
std::string reuse_html(const ReuseReport& report) { return page_of(reuse_document(report, true)); }

}  // namespace plumbline::report
