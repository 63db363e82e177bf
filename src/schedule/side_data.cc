#include "schedule/side_data.h"

#include <numeric>

namespace plumbline::schedule {

int side_dimension(const lower::Einsum& einsum, std::size_t operand) {
  const lower::Operand& what = einsum.operands[operand];
  if (what.side_bits <= 0 || what.side_group <= 0) return -1;
  for (const lower::Axis& axis : what.axes) {
    if (axis.size() != 1) continue;
    bool summed = true;
    for (const lower::Axis& output : einsum.operands.back().axes) {
      for (const lower::AxisTerm& term : output) summed = summed && term.dim != axis[0].dim;
    }
    if (summed) return axis[0].dim;
  }
  return -1;
}

std::int64_t side_words(std::int64_t moved, std::int64_t size, std::int64_t extent, std::int64_t group) {
  // Groups touched by all tiles together: every group once, and once more where a tile begins inside it.
  const std::int64_t groups = (size + group - 1) / group;
  const std::int64_t begins = (size - 1) / extent;  // tiles but the first
  const std::int64_t aligned = begins / (group / std::gcd(extent, group));
  const __int128 touched = static_cast<__int128>(groups) + begins - aligned;
  return static_cast<std::int64_t>((moved * touched + size - 1) / size);
}

}  // namespace plumbline::schedule
