#pragma once
// What no mapping of a kernel is below, whatever its loops and however ragged its factors: floors for kernels whose
// best mapping no search can prove.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ingest/accelerator.h"
#include "lower/einsum.h"
#include "schedule/combine_fronts.h"
#include "schedule/search_accelerator.h"

namespace plumbline::schedule {

/// Columns and rows at work when the dimensions that may run along them are laid in the fewest passes, averaged over
/// these passes: a dimension of 197 takes two passes on 128 columns, 98.5 columns each.
struct ArrayUse {
  double columns = 1;
  double rows = 1;
};

/// `across`, `down`: dimensions that may run along the columns and down the rows, one bit each.
[[nodiscard]] ArrayUse best_array_use(const lower::Einsum& einsum, std::uint32_t across, std::uint32_t down,
                                      std::int64_t columns, std::int64_t rows);

/// Cycles of a kernel whose levels and links run beside each other in `overlapped`, with the array's own port as one
/// more link: `shift` cycles in which held tiles move in (or held sums out), beside the compute or between it.
[[nodiscard]] double with_shifts(double overlapped, double compute, double shift, std::size_t stationary,
                                 const ingest::Accelerator& accelerator);

/// `keeps` has, by level outside the array, a bit for each operand that the level must hold; `stationary` is what the
/// array holds. Every element passes every level that must hold it once. A word that streams past held ones serves the
/// PEs of one row or column in a step and is read again in the next; a sum that leaves the array adds up one column,
/// one that stays is updated at every step. Every tile the array holds shifts through its edge, a row at a time. A
/// network that does not copy carries a word for every receiver, one that does not add carries every addend; the first
/// line, the root or the port of it is in use in every pass.
[[nodiscard]] KernelFront compulsory_floor(const lower::Einsum& einsum, const AcceleratorModel& model,
                                           const std::vector<std::uint32_t>& keeps, std::size_t stationary,
                                           const ArrayUse& use, const ingest::Accelerator& accelerator);

}  // namespace plumbline::schedule
