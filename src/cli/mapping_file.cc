#include "cli/mapping_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/command.h"
#include "cli/load_accelerator.h"
#include "cli/map_kernel.h"
#include "schedule/evaluator.h"
#include "schedule/schedule.h"

namespace plumbline::cli {

std::string mapping_file_text(const schedule::Mapping& mapping, const lower::Einsum& einsum,
                              const schedule::Hierarchy& hierarchy) {
  std::string text = "mapping:\n";
  for (std::size_t l = 0; l < mapping.levels.size(); ++l) {
    const schedule::LevelNest& nest = mapping.levels[l];
    std::vector<std::string> kept;
    for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
      if (nest.keeps_operand(o)) kept.push_back(einsum.operands[o].name);
    }
    std::vector<std::string> loops;
    for (const schedule::Loop& loop : nest.loops) {
      const char* axis = loop.kind == schedule::LoopKind::spatial_x   ? " x"
                         : loop.kind == schedule::LoopKind::spatial_y ? " y"
                                                                      : "";
      loops.push_back(fmt::format("{} {}{}", einsum.dim_names[static_cast<std::size_t>(loop.dim)], loop.bound, axis));
    }
    text += fmt::format("  - {{level: {}, keep: [{}], loops: [{}]}}\n", hierarchy.levels[l].name, fmt::join(kept, ", "),
                        fmt::join(loops, ", "));
  }
  return text;
}

Diagnostics at_the_mapping(Diagnostics faults, const ingest::Value& document) {
  const ingest::Value* rows = document.find("mapping");
  for (Diagnostic& fault : faults) {
    if (!fault.span.source) fault.span = rows == nullptr ? document.span : rows->span;
  }
  return faults;
}

Result<execute::ReductionOrder> read_reduction_order(const std::string& path, const std::string& accelerator,
                                                     std::int64_t m, std::int64_t n, std::int64_t k) {
  ingest::Library library(find_catalog());
  PL_TRY(const ingest::Accelerator machine, load_accelerator(accelerator, library));
  const schedule::Hierarchy hierarchy = schedule::make_hierarchy(machine, 1.0);
  const lower::Einsum einsum = lower::gemm_einsum(m, n, k);
  PL_TRY(const ingest::Value document, library.read_document(path));
  PL_TRY(const schedule::Mapping mapping, read_mapping(document, einsum, hierarchy));
  PL_TRY(const schedule::Evaluator evaluator, schedule::Evaluator::prepare(einsum, hierarchy));
  schedule::Tally tally;
  const schedule::Verdict verdict = evaluator.evaluate(mapping, tally);
  if (!verdict.ok()) return at_the_mapping({evaluator.explain(verdict)}, document);
  return execute::reduction_order(einsum, mapping);
}

}  // namespace plumbline::cli
