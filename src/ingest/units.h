#pragma once
// Physical numbers with units: the one grammar of every YAML file.
//
//   quantity = number , [ space ] , unit ;
//   number   = [ "-" ] , digits , [ "." , digits ] ;
//   unit     = "%" | "degC" | product ;
//   product  = factor , { ( "*" | "/" ) , factor } | "/" , factor ;
//   factor   = [ prefix ] , base ;
//   prefix   = "f"|"p"|"n"|"u"|"m"|"k"|"M"|"G"|"T" | "Ki"|"Mi"|"Gi"|"Ti" ;
//   base     = "s"|"min"|"h"|"Hz"|"B"|"bit"|"cycle"|"J"|"W"|"K"|"MAC"|"op" ;
#include <optional>
#include <string>
#include <string_view>

#include "core/quantity.h"
#include "ingest/document.h"

namespace plumbline::ingest {

/// A number in base units (s, B, bit, cycle, J, K, MAC); percent is a ratio; degC becomes K only through read_celsius.
struct Physical {
  double value = 0;
  Dim dim;
  bool celsius = false;
  bool percent = false;
};

/// Parses `text`; on failure returns nothing and sets `why` and, for a bare number, `bare`.
std::optional<Physical> parse_physical(std::string_view text, std::string& why, bool& bare);

/// A number of dimension `dim` in base units within [low, high]. `example` ("2 ms") is offered for a bare number, with
/// the user's digits. Errors: missing-unit, wrong-dimension, unknown-unit, bad-number, yaml-trap.
std::optional<double> read_quantity(const Value& value, Dim dim, std::string_view example, double low, double high,
                                    Diagnostics& errors);
/// A temperature in degC.
std::optional<double> read_celsius(const Value& value, Diagnostics& errors);
/// A percentage as a ratio; `%` is required.
std::optional<double> read_percent(const Value& value, double low, double high, Diagnostics& errors);

/// "s", "B/s": a dimension in words for messages.
[[nodiscard]] std::string dim_text(Dim dim);

inline constexpr Dim kTime{.second = 1};
inline constexpr Dim kFrequency{.second = -1};
inline constexpr Dim kBytes{.byte = 1};
inline constexpr Dim kBytesPerSecond{.byte = 1, .second = -1};
inline constexpr Dim kBytesPerCycle{.byte = 1, .cycle = -1};
inline constexpr Dim kPower{.second = -1, .joule = 1};
inline constexpr Dim kEnergyPerBit{.bit = -1, .joule = 1};
inline constexpr Dim kEnergyPerMac{.joule = 1, .mac = -1};
inline constexpr Dim kEnergy{.joule = 1};

}  // namespace plumbline::ingest
