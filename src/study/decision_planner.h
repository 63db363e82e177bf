#pragma once
// The steps of a decision study: shared by the files that implement them, used by nothing else.
#include <string>
#include <vector>

#include "study/decision_study.h"
#include "study/fix_rules.h"

namespace plumbline::study {

/// Plans and runs a decision study, step by step; each step reads what the ones before it measured.
class Planner {
 public:
  Planner(const ingest::Comparison& comparison, Engine& engine, const StudyOptions& options)
      : comparison_(comparison), engine_(engine), options_(options) {}

  Result<DecisionStudy> run();

 private:
  ingest::Value document(std::uint32_t changes, const std::vector<ingest::Value>& patches = {}) const;
  Status prepare_arms();
  Status run_coalitions();
  void run_reliefs();
  void run_fixes();
  void run_finalists();
  void predict_changes();
  void record_arms();

  struct Row {
    decide::Relief relief;
    Prepared baseline;
    Prepared candidate;
    bool frozen_baseline_batches = false;  ///< policy: the candidate replays the baseline's batches
  };
  void add_resource_rows(std::vector<Row>& rows, bool weight_metric) const;
  void add_constraint_rows(std::vector<Row>& rows) const;
  void add_policy_rows(std::vector<Row>& rows) const;
  void measure_rows(std::vector<Row>& rows);
  void add_pairs();
  FixContext fix_context() const;

  const ingest::Comparison& comparison_;
  Engine& engine_;
  const StudyOptions& options_;
  DecisionStudy out_;
  Prepared baseline_;
  Prepared candidate_;
  std::uint32_t all_ = 0;
  decide::Symptom symptom_;
  std::vector<std::uint64_t> replay_seeds_;  ///< the first of the judging seeds
  std::vector<serve::FrozenBatches> baseline_batches_;
  std::vector<serve::FrozenBatches> candidate_batches_;
};

}  // namespace plumbline::study
