#include <fmt/format.h>

#include <algorithm>

#include "ingest/accelerator.h"
#include "ingest/topology.h"
#include "ingest/units.h"

namespace plumbline::ingest {

std::optional<double> Rate::per_cycle(Clock clock) const {
  if (bytes_per_cycle) return bytes_per_cycle;
  if (bytes_per_second) return *bytes_per_second / clock.frequency.raw();
  return std::nullopt;
}

const AcceleratorLevel* Accelerator::level(const std::string& level_name) const {
  for (const auto& l : levels) {
    if (l.name == level_name) return &l;
  }
  return nullptr;
}

const AcceleratorLevel& Accelerator::array() const {
  const auto it = std::find_if(levels.begin(), levels.end(), [](const AcceleratorLevel& l) { return l.array; });
  PL_CHECK(it != levels.end());
  return *it;
}

namespace {

// A zero rate on a used path would divide by zero; a rate is positive or absent.
// Slower links than 1 kB/s would only make times that overflow a run's nanoseconds.
constexpr double kSlowest = 1e3;           // B/s
constexpr double kSlowestPerCycle = 1e-6;  // B/cycle: 1 kB/s at 1 GHz
constexpr double kHuge = 1e18;

Rate read_rate(const Value* value, Diagnostics& errors) {
  Rate rate;
  if (value == nullptr) return rate;
  if (value->kind == ValueKind::scalar && value->text == "unlimited") return rate;
  std::string why;
  bool bare = false;
  const auto physical = value->kind == ValueKind::scalar ? parse_physical(value->text, why, bare) : std::nullopt;
  if (physical && physical->dim == kBytesPerCycle) {
    rate.bytes_per_cycle = read_quantity(*value, kBytesPerCycle, "256 B/cycle", kSlowestPerCycle, kHuge, errors);
  } else {
    rate.bytes_per_second = read_quantity(*value, kBytesPerSecond, "614 GB/s", kSlowest, kHuge, errors);
  }
  return rate;
}

Keeps read_holds(const Value* value, Diagnostics& errors) {
  Keeps keeps;
  if (value == nullptr || !expect_list(*value, "holds", errors)) return keeps;
  for (const auto& item : value->items) {
    const auto name = read_choice(item, {"weights", "inputs", "outputs"}, errors);
    if (!name) continue;
    keeps.weights |= *name == "weights";
    keeps.inputs |= *name == "inputs";
    keeps.outputs |= *name == "outputs";
  }
  return keeps;
}

TensorNetwork read_tensor_network(MapReader& networks, const char* tensor, Diagnostics& errors) {
  TensorNetwork made;
  const Value* value = networks.require(tensor);
  if (value == nullptr) return made;
  MapReader map(*value, fmt::format("the network of the {}", tensor), errors);
  if (const Value* v = map.require("topology")) made.topology = read_choice(*v, topology_names(), errors).value_or("");
  made.link = read_rate(map.require("link"), errors);
  map.finish();
  return made;
}

ArrayNetworks read_networks(const Value& value, Diagnostics& errors) {
  ArrayNetworks made;
  MapReader map(value, "the network of the array", errors);
  made.weights = read_tensor_network(map, "weights", errors);
  made.inputs = read_tensor_network(map, "inputs", errors);
  made.outputs = read_tensor_network(map, "outputs", errors);
  const Value* shared = map.find("shared");
  if (shared != nullptr) made.shared = read_flag(*shared, errors).value_or(false);
  map.find("source");
  map.finish();
  if (!made.shared || !errors.empty()) return made;
  const auto same = [](const TensorNetwork& a, const TensorNetwork& b) {
    return a.topology == b.topology && a.link.bytes_per_cycle == b.link.bytes_per_cycle &&
           a.link.bytes_per_second == b.link.bytes_per_second;
  };
  if (!same(made.weights, made.inputs) || !same(made.weights, made.outputs)) {
    errors.push_back(
        make_error("bad-value", shared->span, "tensors that share their wires need one topology and one link"));
  } else if (find_topology(made.weights.topology)->shape == NetworkShape::chain) {
    errors.push_back(make_error("bad-value", shared->span,
                                fmt::format("'{}' has wires of its own for every tensor", made.weights.topology),
                                "bus, trees and mesh_xy can be shared"));
  }
  return made;
}

AcceleratorLevel read_level(const std::string& name, const Value& value, Diagnostics& errors) {
  AcceleratorLevel level;
  level.name = name;
  level.span = value.span;
  MapReader map(value, fmt::format("the level '{}'", name), errors);
  level.keeps = read_holds(map.require("holds"), errors);
  if (const Value* v = map.find("capacity"); v != nullptr && v->text != "unlimited") {
    if (const auto bytes = read_quantity(*v, kBytes, "128 MiB", 1, 0x1p60, errors)) {
      level.capacity = Bytes(static_cast<std::int64_t>(*bytes));
    }
  }
  level.read = read_rate(map.find("read"), errors);
  level.write = read_rate(map.find("write"), errors);
  if (const Value* v = map.find("off_chip")) level.off_chip = read_flag(*v, errors).value_or(false);
  if (const Value* v = map.find("array")) level.array = read_flag(*v, errors).value_or(false);
  constexpr std::int64_t kMaxSide = 65536;
  if (level.array) {
    if (const Value* v = map.require("columns")) level.fanout_x = read_integer(*v, 1, kMaxSide, errors).value_or(1);
    if (const Value* v = map.require("rows")) level.fanout_y = read_integer(*v, 1, kMaxSide, errors).value_or(1);
    if (const Value* v = map.find("network")) level.networks = read_networks(*v, errors);
  }
  if (const Value* v = map.find("energy")) {
    MapReader energy(*v, "the energy of a level", errors);
    if (const Value* r = energy.require("read")) level.read_action = read_text(*r, errors).value_or("");
    if (const Value* w = energy.require("write")) level.write_action = read_text(*w, errors).value_or("");
    energy.finish();
  }
  map.find("source");
  map.finish();
  return level;
}

void read_levels(const Value& value, Accelerator& out, Diagnostics& errors) {
  if (value.kind != ValueKind::map || value.entries.empty()) {
    errors.push_back(
        make_error("wrong-type", value.span, "levels must be a map from level name to level, outermost first"));
    return;
  }
  if (value.entries.size() > 7) {
    errors.push_back(make_error("too-large", value.span, "more than 7 storage levels"));
    return;
  }
  for (const auto& entry : value.entries) {
    out.levels.push_back(read_level(entry.key, entry.value, errors));
    out.levels.back().span = entry.span;
  }
  const auto arrays = std::count_if(out.levels.begin(), out.levels.end(), [](const auto& l) { return l.array; });
  if (arrays != 1) {
    errors.push_back(
        make_error("bad-value", value.span, fmt::format("{} levels say 'array: true'; exactly one must", arrays)));
  } else if (!out.levels.back().array) {
    errors.push_back(make_error("bad-value", value.span, "the level with 'array: true' must be the innermost"));
  }
  const auto& outer = out.levels.front();
  if (!(outer.keeps.weights && outer.keeps.inputs && outer.keeps.outputs)) {
    errors.push_back(
        make_error("bad-value", outer.span,
                   fmt::format("the outermost level '{}' must hold weights, inputs and outputs", outer.name)));
  }
}

void read_formats(const Value& value, Accelerator& out, Diagnostics& errors) {
  if (!expect_list(value, "formats", errors)) return;
  for (const auto& item : value.items) {
    FormatSupport format;
    MapReader map(item, "a format row", errors);
    if (const Value* v = map.require("inputs")) format.inputs = read_text(*v, errors).value_or("");
    if (const Value* v = map.require("accumulate")) format.accumulate = read_text(*v, errors).value_or("");
    if (const Value* v = map.require("macs_per_pe"))
      format.macs_per_pe = read_number(*v, 0.0625, 64, errors).value_or(1);
    if (const Value* v = map.require("energy")) format.mac_action = read_text(*v, errors).value_or("");
    map.find("source");
    map.finish();
    out.formats.push_back(std::move(format));
  }
}

void read_energy_table(const Value& table, Accelerator& out, Diagnostics& errors) {
  MapReader map(table, "the energy table", errors);
  map.find("plumbline");
  map.find("kind");
  map.find("source");
  if (const Value* v = map.require("name")) out.energy_table = read_text(*v, errors).value_or("");
  const Value* actions = map.require("actions");
  map.finish();
  if (actions == nullptr || actions->kind != ValueKind::map) return;
  for (const auto& entry : actions->entries) {
    EnergyAction action;
    MapReader row(entry.value, fmt::format("the action '{}'", entry.key), errors);
    if (const Value* v = row.require("energy")) {
      std::string why;
      bool bare = false;
      const auto physical = v->kind == ValueKind::scalar ? parse_physical(v->text, why, bare) : std::nullopt;
      const struct {
        Dim dim;
        const char* per;
      } kinds[] = {{kEnergyPerBit, "bit"}, {kEnergyPerMac, "mac"}, {kEnergy, "op"}};
      for (const auto& k : kinds) {
        if (physical && physical->dim == k.dim) action.per = k.per;
      }
      const Dim wanted = action.per == "mac" ? kEnergyPerMac : action.per == "op" ? kEnergy : kEnergyPerBit;
      if (const auto joules = read_quantity(*v, wanted, "0.94 pJ/bit", 0, 1, errors))
        action.femtojoules = *joules * 1e15;
    }
    if (const Value* v = row.require("source")) action.source = read_text(*v, errors).value_or("");
    row.finish();
    out.energy[entry.key] = std::move(action);
  }
}

void check_actions(const Accelerator& out, const Value& document, Diagnostics& errors) {
  std::vector<std::string> known;
  for (const auto& [name, action] : out.energy) known.push_back(name);
  const auto check = [&](const std::string& name, const Span& span, const std::string& per) {
    if (name.empty()) return;
    const auto it = out.energy.find(name);
    if (it == out.energy.end()) {
      errors.push_back(make_error("unknown-name", span,
                                  fmt::format("the energy table '{}' has no action '{}'", out.energy_table, name),
                                  suggest(name, known)));
    } else if (it->second.per != per) {
      errors.push_back(
          make_error("wrong-dimension", span,
                     fmt::format("the action '{}' is per {}, but per {} is needed", name, it->second.per, per)));
    }
  };
  for (const auto& level : out.levels) {
    check(level.read_action, level.span, "bit");
    check(level.write_action, level.span, "bit");
  }
  const Value* formats = document.find("formats");
  for (const auto& format : out.formats) check(format.mac_action, formats->span, "mac");
  if (const Value* vector_unit = document.find("vector_unit")) check(out.vector_unit.action, vector_unit->span, "op");
}

void read_clock(const Value& value, Accelerator& out, Diagnostics& errors) {
  MapReader map(value, "the clock section", errors);
  const auto hertz = [&](const Value* v) {
    return v == nullptr ? std::optional<double>() : read_quantity(*v, kFrequency, "1 GHz", 1e3, 1e12, errors);
  };
  const auto nominal = hertz(map.require("nominal"));
  out.nominal = Clock{Hertz(nominal.value_or(1e9))};
  out.clock_min = Hertz(hertz(map.find("min")).value_or(out.nominal.frequency.raw()));
  out.clock_max = Hertz(hertz(map.find("max")).value_or(out.nominal.frequency.raw()));
  map.find("source");
  map.finish();
  if (out.clock_min > out.nominal.frequency || out.clock_max < out.nominal.frequency) {
    errors.push_back(make_error("bad-value", value.span, "the nominal clock lies outside min to max"));
  }
}

void read_host_and_power(MapReader& map, Accelerator& out, Diagnostics& errors) {
  constexpr double kLongest = 1;      // s
  constexpr double kMostPower = 1e6;  // W
  if (const Value* v = map.find("host")) {
    MapReader host(*v, "the host section", errors);
    if (const Value* x = host.find("launch_per_batch"))
      out.host.launch_per_batch = Seconds(read_quantity(*x, kTime, "20 us", 0, kLongest, errors).value_or(0));
    if (const Value* x = host.find("launch_per_kernel"))
      out.host.launch_per_kernel = Seconds(read_quantity(*x, kTime, "1 us", 0, kLongest, errors).value_or(0));
    if (const Value* x = host.find("power"))
      out.host.power = Watts(read_quantity(*x, kPower, "20 W", 0, kMostPower, errors).value_or(0));
    host.find("source");
    host.finish();
  }
  if (const Value* v = map.require("power")) {
    MapReader power(*v, "the power section", errors);
    if (const Value* x = power.require("idle"))
      out.power.idle = Watts(read_quantity(*x, kPower, "28 W", 0, kMostPower, errors).value_or(0));
    if (const Value* x = power.find("active"))
      out.power.active = Watts(read_quantity(*x, kPower, "5 W", 0, kMostPower, errors).value_or(0));
    power.find("source");
    power.finish();
  }
  if (const Value* v = map.find("cooling")) {
    constexpr Dim kThermalResistance{.second = 1, .joule = -1, .kelvin = 1};
    MapReader cooling(*v, "the cooling section", errors);
    out.cooling = Cooling{};
    if (const Value* x = cooling.require("resistance"))
      out.cooling->kelvin_per_watt = read_quantity(*x, kThermalResistance, "0.3 K/W", 0, 1000, errors).value_or(0);
    if (const Value* x = cooling.require("limit")) out.cooling->limit_celsius = read_celsius(*x, errors).value_or(0);
    cooling.find("source");
    cooling.finish();
  }
}

}  // namespace

Result<Accelerator> read_accelerator(const Value& document, const Value& energy_table) {
  Diagnostics errors;
  Accelerator out;
  MapReader map(document, "the accelerator", errors);
  map.find("plumbline");
  map.find("kind");
  map.find("energy");
  if (const Value* v = map.require("name")) out.name = read_text(*v, errors).value_or("");
  if (const Value* v = map.find("source")) out.source = read_text(*v, errors).value_or("");
  if (const Value* v = map.require("clock")) read_clock(*v, out, errors);
  if (const Value* v = map.require("levels")) read_levels(*v, out, errors);
  if (const Value* v = map.require("preload")) {
    MapReader preload(*v, "the preload section", errors);
    if (const Value* x = preload.require("kind")) {
      const auto kind = read_choice(*x, {"double_buffered", "serial"}, errors);
      out.preload = kind == "serial" ? Preload::serial : Preload::double_buffered;
    }
    if (const Value* x = preload.require("rows_per_cycle"))
      out.preload_rows_per_cycle = read_integer(*x, 1, 65536, errors).value_or(1);
    preload.find("source");
    preload.finish();
  }
  if (const Value* v = map.require("formats")) read_formats(*v, out, errors);
  if (const Value* v = map.require("vector_unit")) {
    MapReader unit(*v, "the vector unit", errors);
    if (const Value* x = unit.require("operations_per_cycle"))
      out.vector_unit.operations_per_cycle = read_number(*x, 0.001, 1e9, errors).value_or(1);
    if (const Value* x = unit.require("energy")) out.vector_unit.action = read_text(*x, errors).value_or("");
    unit.find("source");
    unit.finish();
  }
  read_host_and_power(map, out, errors);
  map.finish();
  read_energy_table(energy_table, out, errors);
  if (errors.empty()) check_actions(out, document, errors);
  if (!errors.empty()) return errors;
  return out;
}

}  // namespace plumbline::ingest
