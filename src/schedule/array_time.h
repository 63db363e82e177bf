#pragma once
// Cycles of one matrix kernel on the array, in closed form over its kinds of tiles (docs/execute.md has the formulas).
#include <cstddef>
#include <cstdint>

#include "core/quantity.h"
#include "ingest/accelerator.h"
#include "lower/einsum.h"
#include "schedule/mapping.h"

namespace plumbline::schedule {

/// Array cycles by exclusive cause; off-chip, vector-unit and host time are not in here.
struct ArrayTime {
  std::int64_t useful = 0;
  std::int64_t preload_exposed = 0;
  std::int64_t weight_wait = 0;
  std::int64_t feeder = 0;
  std::int64_t sram = 0;
  std::int64_t psum_drain = 0;
  std::int64_t barrier = 0;
  std::int64_t visits = 0;     ///< tiles held by the array, one after the other
  std::int64_t shift = 0;      ///< cycles in which tiles shift in (held sums: out), hidden or not; no part of the total
  std::int64_t pe_useful = 0;  ///< PE-cycles of the useful cycles: working,
  std::int64_t pe_padded = 0;  ///< mapped but beyond the edge of a ragged tile,
  std::int64_t pe_unmapped = 0;  ///< and never mapped
  [[nodiscard]] std::int64_t total() const {
    return useful + preload_exposed + weight_wait + feeder + sram + psum_drain + barrier;
  }
  friend bool operator==(const ArrayTime&, const ArrayTime&) = default;
};

/// `stationary` is the operand the array holds. A preload rate of 0 rows per cycle means that preloading takes no time.
[[nodiscard]] ArrayTime array_time(const lower::Einsum& einsum, const Mapping& mapping, std::size_t stationary,
                                   double macs_per_pe, const ingest::Accelerator& accelerator, Clock clock);

}  // namespace plumbline::schedule
