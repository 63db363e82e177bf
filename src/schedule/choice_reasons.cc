#include "schedule/choice_reasons.h"

#include <algorithm>

namespace plumbline::schedule {
namespace {

void add(MappingPrice& sum, const MappingPrice& price, std::int64_t times) {
  sum.off_array_weight += price.off_array_weight * times;
  sum.off_array_activation += price.off_array_activation * times;
  sum.psum += price.psum * times;
  sum.off_chip += price.off_chip * times;
  sum.cycles += price.cycles * times;
  sum.femtojoules += price.femtojoules * static_cast<double>(times);
}

/// The row of a name, made where it is missing; rows stay in order of name.
template <class Row, class Name>
Row& row_of(std::vector<Row>& rows, const std::string& name, Name member) {
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.*member == name; });
  if (at != rows.end()) return *at;
  Row row;
  row.*member = name;
  return *rows.insert(rows.end(), std::move(row));
}

}  // namespace

std::vector<ClassChoice> explain_choices(const lower::KernelGraph& graph, const Schedule& schedule) {
  std::vector<ClassChoice> classes;
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) {
    const lower::Kernel& kernel = graph.kernels[k];
    if (kernel.kind != lower::KernelKind::matrix) continue;
    const KernelSchedule& made = schedule.kernels[k];
    ClassChoice& choice = row_of(classes, kernel.layer_class, &ClassChoice::layer_class);
    ++choice.kernels;
    add(choice.chosen, made.price, kernel.repeats);
    for (const DataflowChoice& tried : made.choices) {
      ClassAlternative& row = row_of(choice.alternatives, tried.dataflow, &ClassAlternative::dataflow);
      if (!tried.failure.empty()) {
        row.failure = tried.failure;
        continue;
      }
      row.won += tried.dataflow == made.dataflow ? 1 : 0;
      row.value += tried.value * static_cast<double>(kernel.repeats);
      add(row.total, tried.price, kernel.repeats);
    }
  }
  return classes;
}

}  // namespace plumbline::schedule
