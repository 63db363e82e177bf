#pragma once
// The rules that turn a row of catalog/fixes into concrete single-part patches for one candidate.
#include <optional>
#include <string>
#include <vector>

#include "execute/cost_table.h"
#include "ingest/scenario.h"

namespace plumbline::study {

struct FixContext {
  const ingest::Value* baseline = nullptr;     ///< document
  const ingest::Value* candidate = nullptr;    ///< document
  const ingest::Scenario* scenario = nullptr;  ///< candidate, read
  const std::vector<ingest::Change>* changes = nullptr;
  std::optional<std::size_t> guilty;
  std::vector<std::string> harmed_classes;  ///< layer classes worse on the symptom's load
  std::vector<std::string> spared_classes;  ///< the others
};

struct FixProposal {
  std::string id;
  std::string kind;
  std::string title;
  std::string hypothesis;
  std::string path;  ///< key it sets, for its stage and owner
  ingest::Value patch;
  int tier = 0;
};

/// Proposals of one row; none where the rule does not apply. Never sets a key to the value it has.
[[nodiscard]] std::vector<FixProposal> propose(const ingest::FixRow& row, const FixContext& context);

/// Names that a row's rule may have.
[[nodiscard]] std::vector<std::string> fix_rule_names();

/// The patch that takes `from` to `to`.
[[nodiscard]] ingest::Value difference(const ingest::Value& from, const ingest::Value& to);

}  // namespace plumbline::study
