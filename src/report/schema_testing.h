#pragma once
// JSON Schema for tests: whether a document obeys docs/schema/<its kind>.schema.json.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace plumbline::report {

inline std::string schema_path(const std::string& kind) {
  return std::string(PLUMBLINE_SOURCE_DIR) + "/docs/schema/" + kind + ".schema.json";
}

inline nlohmann::json schema_of(const std::string& kind) {
  std::ifstream file(schema_path(kind));
  EXPECT_TRUE(file) << "no schema of the kind '" << kind << "'";
  return file ? nlohmann::json::parse(file) : nlohmann::json(false);
}

/// Empty when the document obeys the schema.
inline std::string violations(const nlohmann::json& schema, const nlohmann::json& document) {
  valijson::Schema parsed;
  valijson::SchemaParser parser;
  const valijson::adapters::NlohmannJsonAdapter schema_adapter(schema);
  parser.populateSchema(schema_adapter, parsed);
  valijson::Validator validator;
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter target(document);
  std::string out;
  if (validator.validate(parsed, target, &results)) return out;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    for (const auto& part : error.context) out += part;
    out.append(": ").append(error.description).append("\n");
  }
  return out;
}

}  // namespace plumbline::report
