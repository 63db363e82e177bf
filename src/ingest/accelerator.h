#pragma once
// An accelerator as its YAML file states it (catalog/accelerators/, docs/accelerators.md).
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/quantity.h"
#include "core/result.h"
#include "ingest/document.h"

namespace plumbline::ingest {

/// A link's rate: per core cycle (on the core clock) or per second (on a clock of its own). Absent both: unlimited.
struct Rate {
  std::optional<double> bytes_per_cycle;
  std::optional<double> bytes_per_second;
  /// Bytes per core cycle at `clock`; nothing when unlimited.
  [[nodiscard]] std::optional<double> per_cycle(Clock clock) const;
};

/// Which operands a level may hold.
struct Keeps {
  bool weights = false;
  bool inputs = false;
  bool outputs = false;
};

/// How one tensor travels between the array and the levels outside it.
struct TensorNetwork {
  std::string topology = {};  ///< row of ingest/topologies.inc
  Rate link = {};             ///< of every link
};

struct ArrayNetworks {
  TensorNetwork weights;  ///< or what is held in their place
  TensorNetwork inputs;
  TensorNetwork outputs;
  bool shared = false;  ///< all three on the same wires
};

struct AcceleratorLevel {
  std::string name;
  Keeps keeps;
  std::optional<Bytes> capacity;  ///< of the whole level; absent = unbounded
  Rate read;
  Rate write;
  bool off_chip = false;
  bool array = false;                     ///< exactly one level: the processing elements
  std::int64_t fanout_x = 1;              ///< array level: columns
  std::int64_t fanout_y = 1;              ///< array level: rows
  std::optional<ArrayNetworks> networks;  ///< array level; absent = ideal
  std::string read_action;                ///< row of the energy table, per bit
  std::string write_action;
  Span span;
};

/// How the array takes its stationary operand.
enum class Preload { serial, double_buffered };

struct FormatSupport {
  std::string inputs;      ///< "int8"
  std::string accumulate;  ///< "int32"
  double macs_per_pe = 1;  ///< per cycle
  std::string mac_action;  ///< row of the energy table, per MAC
};

struct VectorUnit {
  double operations_per_cycle = 0;  ///< element operations, all lanes together
  std::string action;               ///< energy per operation
};

struct Host {
  Seconds launch_per_batch{0};
  Seconds launch_per_kernel{0};  ///< pipelined behind the device, so it costs only when longer than the kernel
  Watts power{0};
};

struct Power {
  Watts idle{0};    ///< leakage and clocks with nothing running, at nominal voltage
  Watts active{0};  ///< added while a batch runs, beyond counted actions (clock tree)
};

/// Steady-state cooling: junction = ambient + resistance × power.
struct Cooling {
  double kelvin_per_watt = 0;
  double limit_celsius = 0;
};

struct EnergyAction {
  double femtojoules = 0;  ///< per bit, per MAC or per operation, as `per` says
  std::string per;         ///< "bit", "mac", "op"
  std::string source;
};

struct Accelerator {
  std::string name;
  std::string source;
  Clock nominal;
  Hertz clock_min{0};
  Hertz clock_max{0};
  std::vector<AcceleratorLevel> levels;  ///< outermost first
  Preload preload = Preload::double_buffered;
  std::int64_t preload_rows_per_cycle = 1;  ///< rows of stationary operand shifted in per cycle
  bool accumulator_double_buffered = true;  ///< drain overlaps compute when two tiles fit
  std::vector<FormatSupport> formats;
  VectorUnit vector_unit;
  Host host;
  Power power;
  std::optional<Cooling> cooling;
  std::string energy_table;
  std::map<std::string, EnergyAction> energy;  ///< resolved from catalog/energy

  [[nodiscard]] const AcceleratorLevel* level(const std::string& level_name) const;
  [[nodiscard]] const AcceleratorLevel& array() const;
};

/// Reads an accelerator document; `energy` is the parsed table it names. Errors with spans for every bad key.
Result<Accelerator> read_accelerator(const Value& document, const Value& energy_table);

}  // namespace plumbline::ingest
