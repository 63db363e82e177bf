#pragma once
// The study engine: from a patched document to a measured arm, remembering by content everything it has made.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "decide/evidence.h"
#include "ingest/library.h"
#include "ingest/scenario.h"
#include "schedule/schedule.h"
#include "serve/run.h"

namespace plumbline::study {

/// A change of the accelerator that is no scenario key: relief of one resource.
struct AcceleratorEdit {
  std::string name;  ///< part of the memo key; empty = none
  std::function<void(ingest::Accelerator&)> apply;
  bool remap = false;  ///< capacities re-map; rates keep the mapping
};

/// Every kernel of every compiled shape with its mapping.
struct Compiled {
  std::vector<schedule::ModelSchedules> models;
  schedule::Residency residency;
  std::int64_t longest_reduction = 0;
  std::string reduction_order;  ///< text of all mappings, for models whose sums depend on it
  bool has_weights = false;
};

/// A configuration ready to run.
struct Prepared {
  std::string name;
  std::string hash;       ///< canonical resolved scenario
  std::string cost_key;   ///< equal keys: one cost table
  std::string serve_key;  ///< equal keys: the same serving and environment
  std::shared_ptr<const ingest::Scenario> scenario;
  std::shared_ptr<const Compiled> compiled;
  std::shared_ptr<const execute::CostTable> costs;
  std::string failure;
  [[nodiscard]] bool ok() const { return failure.empty(); }
};

/// How an arm is run on a seed.
struct Replay {
  enum class Kind { serve, frozen } kind = Kind::serve;
  const std::vector<serve::FrozenBatches>* batches = nullptr;  ///< by seed index, for frozen
};

class Engine {
 public:
  Engine(ingest::Library& library, unsigned threads);

  /// Resolves, reads, compiles and costs a document. Errors: the readers' and the stages' diagnostics.
  Result<Prepared> prepare(const std::string& name, const ingest::Value& document, const AcceleratorEdit& edit = {});

  /// Like prepare, but what cannot be made becomes an arm with a failure.
  Prepared prepare_or_fail(const std::string& name, const ingest::Value& document, const AcceleratorEdit& edit = {});

  /// Runs every (arm, seed) on all threads; results do not depend on their number.
  struct Job {
    const Prepared* prepared = nullptr;
    Replay replay;
    std::vector<std::uint64_t> seeds;
  };
  std::vector<decide::Arm> run(const std::vector<Job>& jobs);

  /// Records the batches of an arm on its seeds.
  std::vector<serve::FrozenBatches> record(const Prepared& prepared, const std::vector<std::uint64_t>& seeds);

  /// The arrivals of one seed: the same for every arm, since traffic cannot be patched.
  std::shared_ptr<const serve::ArrivalTrace> arrivals(const ingest::Scenario& scenario, std::uint64_t seed);

  /// Where `search: certified` remembers its answers; memory of this engine alone unless set.
  void remember_mappings(std::shared_ptr<schedule::MappingCache> cache) { mappings_ = std::move(cache); }

  [[nodiscard]] std::int64_t requests_simulated() const { return requests_; }
  [[nodiscard]] unsigned threads() const { return threads_; }
  [[nodiscard]] ingest::Library& library() { return library_; }

 private:
  Result<std::shared_ptr<const Compiled>> compile(const ingest::Scenario& scenario,
                                                  const ingest::Accelerator& accelerator, const std::string& key);
  Result<std::shared_ptr<const lower::KernelGraph>> lowered(const ingest::ModelUse& model, const std::string& model_key,
                                                            std::int64_t batch, std::int64_t sequence,
                                                            const ingest::Scenario& scenario,
                                                            const ingest::Accelerator& accelerator);
  /// A prepared configuration as an arm without runs.
  [[nodiscard]] decide::Arm empty_arm(const Prepared& prepared) const;

  ingest::Library& library_;
  unsigned threads_;
  std::shared_ptr<schedule::MappingCache> mappings_ = std::make_shared<schedule::MappingCache>();
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const ingest::Scenario>> scenarios_;
  std::map<std::string, std::shared_ptr<const lower::KernelGraph>> lowered_;
  std::map<std::string, std::shared_ptr<const Compiled>> compiled_;
  std::map<std::string, std::shared_ptr<const execute::CostTable>> costs_;
  std::map<std::string, std::shared_ptr<const serve::ArrivalTrace>> arrivals_;
  std::int64_t requests_ = 0;
};

}  // namespace plumbline::study
