#include "schedule/roles.h"

#include "core/check.h"

namespace plumbline::schedule {

std::uint32_t DimRoles::shared() const {
  std::uint32_t bits = all;
  for (const std::uint32_t mask : relevant) bits &= mask;
  return bits;
}

std::uint32_t DimRoles::across_columns(std::size_t stationary) const {
  const std::size_t last = relevant.size() - 1;
  if (stationary == last) return outputs & relevant[0] & ~relevant[1];
  return relevant[stationary] & outputs & ~relevant[1 - stationary];
}

std::uint32_t DimRoles::down_rows(std::size_t stationary) const {
  const std::size_t last = relevant.size() - 1;
  if (stationary == last) return outputs & relevant[1] & ~relevant[0];
  return relevant[stationary] & relevant[1 - stationary] & ~outputs;
}

DimRoles find_roles(const lower::Einsum& einsum) {
  PL_CHECK(einsum.operands.size() == 3);
  DimRoles roles;
  for (const lower::Operand& operand : einsum.operands) roles.relevant.push_back(dims_of(operand));
  roles.all = (1U << einsum.rank()) - 1;
  roles.outputs = roles.relevant.back();
  return roles;
}

std::size_t operand_index(const std::string& name) { return name == "weights" ? 0 : name == "inputs" ? 1 : 2; }

std::int64_t operand_bits(const lower::Operand& operand, std::int64_t words) {
  std::int64_t bits = words * operand.bits;
  if (operand.side_group > 0) bits += (words + operand.side_group - 1) / operand.side_group * operand.side_bits;
  return bits;
}

std::int64_t output_words(const lower::Einsum& einsum, const DimRoles& roles) {
  std::int64_t words = 1;
  for (int d = 0; d < einsum.rank(); ++d) {
    if (((roles.outputs >> d) & 1U) != 0) words *= einsum.dims[static_cast<std::size_t>(d)];
  }
  return words;
}

}  // namespace plumbline::schedule
