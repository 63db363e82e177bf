#include "schedule/search_memo.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <utility>

#include "schedule/evaluator.h"

namespace plumbline::schedule {
namespace {

/// Raised when the search or the counting may answer otherwise than before.
constexpr const char* kSearchVersion = "search 4";

std::string number(double value) { return fmt::format("{:a}", value); }

template <class Limit>
std::string optional_number(const Limit& limit) {
  return limit ? number(static_cast<double>(*limit)) : "-";
}

std::string masks(const std::vector<std::uint32_t>& masks) {
  std::string text;
  for (const std::uint32_t mask : masks) text += fmt::format(" {}", mask);
  return text;
}

std::string einsum_text(const lower::Einsum& einsum) {
  std::string text = "dims";
  for (int d = 0; d < einsum.rank(); ++d) text += fmt::format(" {}", einsum.dims[static_cast<std::size_t>(d)]);
  for (const lower::Operand& operand : einsum.operands) {
    text += fmt::format("\noperand {} {} {} {} {}", static_cast<int>(operand.role), operand.bits, operand.partial_bits,
                        operand.side_bits, operand.side_group);
    for (const lower::Axis& axis : operand.axes) {
      text += " [";
      for (const lower::AxisTerm& term : axis) text += fmt::format(" {}*{}", term.coefficient, term.dim);
      text += " ]";
    }
  }
  return text + "\n";
}

std::string machine_text(const Hierarchy& hierarchy, const EnergyRates& rates) {
  std::string text = fmt::format("macs {} {} {}/{} {}\n", hierarchy.mac_units, hierarchy.mac_mesh_x,
                                 hierarchy.macs_per_cycle, hierarchy.cycles_per_step, number(rates.mac));
  for (std::size_t l = 0; l < hierarchy.levels.size(); ++l) {
    const StorageLevel& level = hierarchy.levels[l];
    text += fmt::format("level {} {} {} {} {} {} {} {} {}\n", level.instances, level.mesh_x,
                        optional_number(level.capacity_bits), optional_number(level.read_bits_per_cycle),
                        optional_number(level.write_bits_per_cycle), level.off_chip ? 1 : 0, level.array ? 1 : 0,
                        l < rates.read.size() ? number(rates.read[l]) : "-",
                        l < rates.write.size() ? number(rates.write[l]) : "-");
  }
  return text;
}

std::string answer_text(const Result<SearchResult>& found) {
  if (!found.ok()) {
    const Diagnostic& why = found.errors().front();
    return fmt::format("no {}\n{}\n", why.kind, why.message);
  }
  const Certificate& c = found->certificate;
  std::string text =
      fmt::format("yes {} {} {} {} {}\n{}\n{}\n{}\nmapping {}\n", number(c.best), number(c.lower_bound), c.nodes,
                  c.opened, c.evaluated, c.objective, c.covered, c.certified_on, found->mapping.levels.size());
  for (const LevelNest& level : found->mapping.levels) {
    text += fmt::format("{} {}", level.keeps, level.loops.size());
    for (const Loop& loop : level.loops)
      text += fmt::format(" {} {} {}", loop.dim, loop.bound, static_cast<int>(loop.kind));
    text += "\n";
  }
  return text;
}

bool read_number(std::istream& in, double& value) {
  std::string word;
  if (!(in >> word)) return false;
  char* end = nullptr;
  value = std::strtod(word.c_str(), &end);
  return end != word.c_str() && *end == '\0';
}

bool read_mapping(std::istream& in, int rank, Mapping& mapping) {
  std::string word;
  std::size_t levels = 0;
  if (!(in >> word >> levels) || word != "mapping" || levels > static_cast<std::size_t>(kMaxLevels)) return false;
  for (std::size_t l = 0; l < levels; ++l) {
    LevelNest nest;
    std::size_t loops = 0;
    if (!(in >> nest.keeps >> loops) || loops > 64) return false;  // far more than any mapping has
    for (std::size_t i = 0; i < loops; ++i) {
      Loop loop;
      int kind = 0;
      if (!(in >> loop.dim >> loop.bound >> kind)) return false;
      if (loop.dim < 0 || loop.dim >= rank || loop.bound < 1 || kind < 0 || kind > 2) return false;
      loop.kind = static_cast<LoopKind>(kind);
      nest.loops.push_back(loop);
    }
    mapping.levels.push_back(std::move(nest));
  }
  return true;
}

double value_of(const SearchResult& found, Objective objective) {
  const auto cycles = static_cast<double>(found.counts.cycles_overlapped);
  switch (objective) {
    case Objective::energy:
      return found.energy;
    case Objective::latency:
      return cycles;
    case Objective::energy_delay:
      return found.energy * cycles;
    case Objective::off_array_weight_bits:
      break;  // by role and level: taken as remembered
  }
  return found.certificate.best;
}

/// A remembered answer; nothing when it does not read or does not count to what it claims.
std::optional<Result<SearchResult>> read_answer(const std::string& text, const lower::Einsum& einsum,
                                                const Hierarchy& hierarchy, const EnergyRates& rates,
                                                const SearchOptions& options) {
  std::istringstream in(text);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  if (word == "no") {
    std::string kind;
    std::string message;
    if (!(in >> kind) || !std::getline(in >> std::ws, message)) return std::nullopt;
    if (kind != "unsupported" && kind != "does-not-fit") return std::nullopt;
    return Result<SearchResult>(make_error(kind == "unsupported" ? "unsupported" : "does-not-fit", Span{}, message));
  }
  SearchResult found;
  Certificate& c = found.certificate;
  if (word != "yes" || !read_number(in, c.best) || !read_number(in, c.lower_bound)) return std::nullopt;
  if (!(in >> c.nodes >> c.opened >> c.evaluated)) return std::nullopt;
  in.ignore();
  if (!std::getline(in, c.objective) || !std::getline(in, c.covered) || !std::getline(in, c.certified_on))
    return std::nullopt;
  if (!read_mapping(in, einsum.rank(), found.mapping)) return std::nullopt;
  auto counted = count_accesses(einsum, hierarchy, found.mapping);
  if (!counted.ok()) return std::nullopt;
  found.counts = std::move(counted).value();
  found.energy = energy_of(found.counts, rates);
  c.bests = {c.best};
  c.lower_bounds = {c.lower_bound};
  constexpr double kRounding = 1e-9;  // sums of the same terms in another order
  if (std::abs(value_of(found, options.objectives.front()) - c.best) > kRounding * c.best) return std::nullopt;
  c.gap = c.lower_bound > 0 ? c.best / c.lower_bound - 1 : 0;
  return Result<SearchResult>(std::move(found));
}

}  // namespace

std::string search_key(const lower::Einsum& einsum, const Hierarchy& hierarchy, const EnergyRates& rates,
                       const SearchOptions& options) {
  std::string text = std::string(kSearchVersion) + "\n" + einsum_text(einsum) + machine_text(hierarchy, rates);
  text += "objectives";
  for (const Objective objective : options.objectives) text += fmt::format(" {}", static_cast<int>(objective));
  text += fmt::format("\nkeep{}\nbypass{}\nimperfect {} one {} most {}\n", masks(options.must_keep),
                      masks(options.must_bypass), options.imperfect ? 1 : 0, options.one_register ? 1 : 0,
                      options.most_evaluations);
  for (const FactorBound& f : options.factors) {
    text += fmt::format("factor {} {} {} {} {}\n", f.level, f.dim, f.spatial ? 1 : 0, f.fewest, f.most);
  }
  for (std::size_t l = 0; l < options.orders.size(); ++l) {
    if (options.orders[l].empty()) continue;
    text += fmt::format("order {}", l);
    for (const int dim : options.orders[l]) text += fmt::format(" {}", dim);
    text += "\n";
  }
  return text + fmt::format("spatial {} {} work {}\n", options.along_x, options.along_y, options.most_work);
}

Result<SearchResult> search_once(const lower::Einsum& einsum, const Hierarchy& hierarchy, const EnergyRates& rates,
                                 const SearchOptions& options, MappingCache& cache) {
  const std::string key = search_key(einsum, hierarchy, rates, options);
  if (const auto known = cache.find(key)) {
    if (auto answer = read_answer(*known, einsum, hierarchy, rates, options)) return std::move(*answer);
  }
  auto found = search_mapping(einsum, hierarchy, rates, options);
  cache.store(key, answer_text(found));
  return found;
}

}  // namespace plumbline::schedule
