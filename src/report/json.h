#pragma once
// How every JSON document of Plumbline is written: stable key order, finite numbers or null with a reason.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "decide/evidence.h"
#include "decide/judge.h"
#include "ingest/document.h"

namespace plumbline::report {

using Json = nlohmann::ordered_json;

/// {"plumbline": 1, "kind": kind}, to be filled.
[[nodiscard]] Json json_document(std::string_view kind);

/// A YAML value with its scalars as text; null and removals become null.
[[nodiscard]] Json value_json(const ingest::Value& value);

/// Sets `key` to a number; one that is not finite becomes null with `<key>_why`.
void put_number(Json& object, const std::string& key, double value, std::string_view why = "it has no finite value");

/// Sets `key` to null and `<key>_why` to the reason.
void put_null(Json& object, const std::string& key, std::string_view why);

/// [low, high]; null with `<key>_why` when either end is not finite.
void put_interval(Json& object, const std::string& key, double low, double high,
                  std::string_view why = "the interval is unbounded");

/// A limit with its value, upper bound and whether it is met.
[[nodiscard]] Json limit_json(const decide::Limit& limit);

[[nodiscard]] Json preflight_json(const decide::PreFlight& flight);

/// Seeds as decimal text: 64 bits do not fit the doubles that many readers make of numbers.
[[nodiscard]] Json seeds_json(const std::vector<std::uint64_t>& seeds);

/// Indented text that ends with a newline; maps and lists that hold only scalars stay on one line while they fit.
/// Numbers in their shortest form that reads back to the same bits; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_dump(const Json& json);

}  // namespace plumbline::report
