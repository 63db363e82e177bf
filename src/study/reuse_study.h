#pragma once
// The reuse-and-bandwidth report: layer classes × shapes, at the operating point, and one arm against another.
#include <optional>
#include <string>
#include <vector>

#include "study/operating_point.h"
#include "study/reuse_row.h"
#include "study/stale_mapping.h"

namespace plumbline::study {

/// Weight traffic of one layer class at the operating point, over all replications.
struct LoadRow {
  std::size_t model = 0;
  std::string layer_class;  ///< empty: all layers
  std::string load;         ///< all, base, burst
  std::string profile;      ///< "all" or the profile's name
  std::int64_t completed = 0;
  std::int64_t off_array_weight = 0;  ///< bytes
  std::int64_t off_chip_weight = 0;   ///< bytes
};

/// Achieved reuse at the operating point: padding makes no useful MAC, refetches and padding make movement.
struct LoadReuse {
  std::size_t model = 0;
  std::string layer_class;
  std::int64_t useful_weight_macs = 0;  ///< of the true sequences of completed requests
  std::int64_t padded_weight_macs = 0;  ///< issued
  std::int64_t weight_elements_in = 0;
  [[nodiscard]] std::optional<double> achieved_reuse() const;
};

/// One configuration's report.
struct ReuseArm {
  std::string name;
  std::string hash;
  std::vector<std::string> models;
  std::vector<std::string> levels;  ///< names, outermost first
  Clock clock;
  std::vector<ReuseShape> shapes;  ///< [model][batch][sequence], repeated shapes left out
  int weight_link = 0;             ///< level that reads weights for the array
  int off_chip = -1;               ///< level, -1 = none
  OperatingPoint point;
  std::vector<LoadRow> loads;
  std::vector<LoadReuse> reuse;
  std::optional<StaleMappings> stale;
  std::string stale_why;  ///< why there is none
};

enum class Step : std::uint8_t { batch, sequence, arm };

/// A class whose reuse rose while its bytes per inference rose too: reuse alone would have read as progress.
struct ReuseFlag {
  Step step = Step::batch;
  std::size_t model = 0;
  std::string layer_class;
  std::int64_t batch_from = 0, sequence_from = 0;
  std::int64_t batch_to = 0, sequence_to = 0;
  double reuse_from = 0, reuse_to = 0;  ///< MACs per element
  double bytes_from = 0, bytes_to = 0;  ///< off-array weight bytes per inference
};

struct ReuseReport {
  ReuseArm baseline;
  std::optional<ReuseArm> candidate;
  std::vector<ReuseFlag> flags;  ///< between neighbouring shapes of the baseline, then between the arms
};

/// Pure: no search, no serving. `stale` may be absent.
[[nodiscard]] ReuseArm reuse_arm(const Prepared& prepared, OperatingPoint point, std::optional<StaleMappings> stale,
                                 std::string stale_why);

/// The report of one arm, or of two side by side.
[[nodiscard]] ReuseReport reuse_report(ReuseArm baseline, std::optional<ReuseArm> candidate);

struct ReuseOptions {
  std::int64_t pairs = 0;  ///< replications; 0 = as many as the gate judges
  bool stale = true;       ///< compile the formed shapes for themselves
};

/// Serves, compiles what is needed and reports one arm. Errors: none but those of reading; a formed shape that cannot
/// be compiled alone leaves the stale mappings out and says why.
[[nodiscard]] ReuseArm study_reuse(Engine& engine, const Prepared& prepared, const ReuseOptions& options);

}  // namespace plumbline::study
