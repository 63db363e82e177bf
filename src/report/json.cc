#include "report/json.h"

#include <algorithm>
#include <cmath>

namespace plumbline::report {
namespace {

constexpr std::size_t kLineWidth = 120;  // characters of a map or list that is kept on one line

std::string compact(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

bool holds_only_scalars(const Json& json) {
  for (const auto& child : json) {
    if (child.is_structured() && !child.empty()) return false;
  }
  return true;
}

// A list of short lists, or a map of such, reads best as one line while it fits.
bool is_row(const Json& json) {
  constexpr std::size_t kMostCells = 8;
  return json.size() <= kMostCells && std::all_of(json.begin(), json.end(), [](const Json& child) {
           return !child.is_structured() || (child.size() <= kMostCells && holds_only_scalars(child));
         });
}

// Lists of numbers can be long: as many to a line as fit.
void append_scalars(const Json& list, std::size_t indent, std::string& out) {
  out += "[\n";
  std::string line(indent, ' ');
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::string item = compact(list[i]);
    if (i + 1 < list.size()) item += ",";
    if (line.size() > indent && line.size() + item.size() + 1 > kLineWidth) {
      out += line + "\n";
      line.assign(indent, ' ');
    }
    if (line.size() > indent) line += " ";
    line += item;
  }
  out += line + "\n";
}

void append(const Json& json, std::size_t indent, std::string& out) {
  if (!json.is_structured() || json.empty()) {
    out += compact(json);
    return;
  }
  const bool flat = holds_only_scalars(json);
  if (flat || is_row(json)) {
    const std::string line = compact(json);
    if (indent + line.size() <= kLineWidth) {
      out += line;
      return;
    }
  }
  const std::string pad(indent + 1, ' ');
  if (json.is_array() && flat) {
    append_scalars(json, indent + 1, out);
  } else {
    out += json.is_array() ? "[\n" : "{\n";
    bool first = true;
    for (auto it = json.begin(); it != json.end(); ++it) {
      if (!first) out += ",\n";
      first = false;
      out += pad;
      if (json.is_object()) out += compact(Json(it.key())) + ": ";
      append(*it, indent + 1, out);
    }
    out += "\n";
  }
  out += std::string(indent, ' ') + (json.is_array() ? "]" : "}");
}

}  // namespace

Json json_document(std::string_view kind) { return {{"plumbline", 1}, {"kind", kind}}; }

Json value_json(const ingest::Value& value) {
  switch (value.kind) {
    case ingest::ValueKind::null:
      return nullptr;
    case ingest::ValueKind::scalar:
      return value.remove ? Json(nullptr) : Json(value.text);
    case ingest::ValueKind::list: {
      Json out = Json::array();
      for (const auto& item : value.items) out.push_back(value_json(item));
      return out;
    }
    case ingest::ValueKind::map: {
      Json out = Json::object();
      for (const auto& entry : value.entries) out[entry.key] = value_json(entry.value);
      return out;
    }
  }
  return nullptr;
}

void put_null(Json& object, const std::string& key, std::string_view why) {
  object[key] = nullptr;
  object[key + "_why"] = why;
}

void put_number(Json& object, const std::string& key, double value, std::string_view why) {
  if (std::isfinite(value)) {
    object[key] = value == 0 ? 0.0 : value;  // -0 and 0 are one number to readers
  } else {
    put_null(object, key, why);
  }
}

void put_interval(Json& object, const std::string& key, double low, double high, std::string_view why) {
  if (std::isfinite(low) && std::isfinite(high)) {
    object[key] = Json::array({low == 0 ? 0.0 : low, high == 0 ? 0.0 : high});
  } else {
    put_null(object, key, why);
  }
}

Json limit_json(const decide::Limit& limit) {
  Json out = {{"unit", limit.unit}};
  constexpr std::string_view kUnmeasured = "a replication completed no request";
  if (limit.measured) {
    put_number(out, "value", limit.value);
    put_number(out, "upper", limit.upper, "one replication has no upper bound");
  } else {
    put_null(out, "value", kUnmeasured);
    put_null(out, "upper", kUnmeasured);
  }
  put_number(out, "limit", limit.limit);
  out["met"] = limit.met;
  return out;
}

Json preflight_json(const decide::PreFlight& flight) {
  Json out = Json::object();
  put_number(out, "capacity_per_s", flight.capacity_per_s);
  put_number(out, "utilization_percent", 100 * flight.utilization);
  put_number(out, "peak_utilization_percent", 100 * flight.peak_utilization);
  put_number(out, "largest_batch_s", flight.largest_batch_seconds);
  if (flight.junction_limit) {
    put_number(out, "junction_celsius", flight.junction_celsius);
    put_number(out, "junction_limit_celsius", *flight.junction_limit);
  } else {
    put_null(out, "junction_celsius", "the accelerator states no cooling");
    put_null(out, "junction_limit_celsius", "the accelerator states no cooling");
  }
  return out;
}

Json seeds_json(const std::vector<std::uint64_t>& seeds) {
  Json out = Json::array();
  for (const auto seed : seeds) out.push_back(std::to_string(seed));
  return out;
}

std::string json_dump(const Json& json) {
  std::string out;
  append(json, 0, out);
  out += "\n";
  return out;
}

}  // namespace plumbline::report
