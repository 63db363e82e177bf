#include "schedule/traffic.h"

#include <algorithm>

#include "schedule/roles.h"

namespace plumbline::schedule {
namespace {

constexpr std::size_t kOutputs = 2;

OperandTraffic output_traffic(const lower::Operand& outputs, const OperandCounts& counts, std::int64_t words,
                              std::int64_t drained, bool inside) {
  OperandTraffic traffic;
  // Of what arrives at or outside the home level, each output once is finished; the rest are sums to be resumed.
  const std::int64_t finished = inside ? 0 : std::min(words, counts.updates);
  traffic.partial_read_bits = (counts.reads + (inside ? drained : 0)) * outputs.partial_bits;
  traffic.partial_write_bits = (counts.fills + counts.updates - finished) * outputs.partial_bits;
  traffic.read_bits = traffic.partial_read_bits + (inside ? 0 : drained * outputs.bits);
  traffic.write_bits = traffic.partial_write_bits + operand_bits(outputs, finished);
  return traffic;
}

}  // namespace

Traffic find_traffic(const lower::Einsum& einsum, const Mapping& mapping, const AccessCounts& counts, int home) {
  Traffic traffic(mapping.levels.size());
  const std::int64_t words = output_words(einsum, find_roles(einsum));
  int outer_keeper = -1;
  for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
    for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
      if (!mapping.levels[l].keeps_operand(o)) continue;
      const OperandCounts& here = counts.levels[l][o];
      if (o == kOutputs) {
        const std::int64_t drained =
            outer_keeper < 0 ? 0 : counts.levels[static_cast<std::size_t>(outer_keeper)][o].updates;
        traffic[l][o] = output_traffic(einsum.operands[o], here, words, drained, static_cast<int>(l) > home);
        outer_keeper = static_cast<int>(l);
      } else {
        traffic[l][o].read_bits = operand_bits(einsum.operands[o], here.reads);
        traffic[l][o].write_bits = operand_bits(einsum.operands[o], here.fills);
      }
    }
  }
  return traffic;
}

}  // namespace plumbline::schedule
