#include "schedule/search_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "schedule/side_data.h"

namespace plumbline::schedule {
namespace {

/// Nodes of a search at most, and chains of one dimension that are never too many.
constexpr double kMostNodes = 4e6;
constexpr std::size_t kFewestChains = 8;
/// Chains of a dimension in a sample.
constexpr std::size_t kMostSampled = 1500;

Diagnostic unsupported(std::string message) { return make_error("unsupported", Span{}, std::move(message)); }

bool limited(const SearchOptions& options, int dim) {
  return std::any_of(options.factors.begin(), options.factors.end(),
                     [&](const FactorBound& f) { return f.dim == dim; });
}

bool ordered(const SearchOptions& options, int dim) {
  return std::any_of(options.orders.begin(), options.orders.end(), [&](const std::vector<int>& order) {
    return std::find(order.begin(), order.end(), dim) != order.end();
  });
}

/// A dimension that must stay itself: it carries a limit or a place in an order or on the mesh, or groups of side data
/// run along it.
bool fixed(const lower::Einsum& einsum, const SearchOptions& options, int dim) {
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    if (side_dimension(einsum, o) == dim) return true;
  }
  const std::uint32_t anywhere = options.along_x & options.along_y;
  return limited(options, dim) || ordered(options, dim) || ((anywhere >> dim) & 1U) == 0;
}

/// Which operands use a dimension, and whether it shares an axis with another one of more than one step.
SearchDim describe(const lower::Einsum& einsum, int dim) {
  SearchDim out;
  out.size = einsum.dims[static_cast<std::size_t>(dim)];
  out.parts = {dim};
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    for (const lower::Axis& axis : einsum.operands[o].axes) {
      bool here = false;
      bool others = false;
      for (const lower::AxisTerm& term : axis) {
        here = here || term.dim == dim;
        others = others || (term.dim != dim && einsum.dims[static_cast<std::size_t>(term.dim)] > 1);
      }
      if (here) out.relevant |= 1U << o;
      out.window = out.window || (here && others);
    }
  }
  return out;
}

/// The chains of one dimension; `most` of them unless they are few anyway.
void fill_chains(const lower::Einsum& einsum, const SearchOptions& options, bool imperfect, int levels,
                 std::int64_t units, std::size_t most, bool classes_allowed, bool sample, SearchDim& dim) {
  ChainRules rules;
  rules.levels = levels;
  rules.units = units;
  for (const FactorBound& limit : options.factors) {
    if (limit.dim == dim.parts[0]) rules.limits.push_back(limit);
  }
  rules.imperfect = imperfect;
  rules.one_register = options.one_register;
  // A dimension every operand uses separates the problem into parts that share nothing. Its loops may as well stand
  // outermost: inside they only make tiles larger.
  rules.apart = dim.relevant == 7 && !dim.window && rules.limits.empty() && !ordered(options, dim.parts[0]);
  if ((((options.along_x | options.along_y) >> dim.parts[0]) & 1U) == 0)
    rules.limits.push_back({levels - 2, dim.parts[0], true, 1, 1});
  std::vector<std::int64_t> parts;
  for (const int part : dim.parts) parts.push_back(einsum.dims[static_cast<std::size_t>(part)]);
  if (sample) {
    sample_chains(parts, rules, most, dim.chains);
    dim.list = ChainList::sample;
    return;
  }
  dim.list = make_chains(parts, rules, most, classes_allowed, dim.chains);
}

/// The kernel over merged dimensions: flat axes in the order of the dimensions, then the windows.
lower::Einsum merged_einsum(const lower::Einsum& einsum, const std::vector<SearchDim>& dims) {
  lower::Einsum out;
  std::array<int, lower::kMaxDims> renamed{};
  renamed.fill(-1);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    out.dims[d] = dims[d].size;
    std::string name;
    for (const int part : dims[d].parts) {
      name += einsum.dim_names[static_cast<std::size_t>(part)];
      renamed[static_cast<std::size_t>(part)] = static_cast<int>(d);
    }
    out.dim_names.push_back(name);
  }
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    lower::Operand operand = einsum.operands[o];
    operand.axes.clear();
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (!dims[d].window && ((dims[d].relevant >> o) & 1U) != 0) operand.axes.push_back({{static_cast<int>(d), 1}});
    }
    for (const lower::Axis& axis : einsum.operands[o].axes) {
      lower::Axis kept;
      for (const lower::AxisTerm& term : axis) {
        const int d = renamed[static_cast<std::size_t>(term.dim)];
        if (d >= 0 && dims[static_cast<std::size_t>(d)].window) kept.push_back({d, term.coefficient});
      }
      if (!kept.empty()) operand.axes.push_back(kept);
    }
    out.operands.push_back(operand);
  }
  return out;
}

/// Chooses the two dimensions that are joined inside a node; the others are enumerated.
Status choose_roles(SearchSpace& space) {
  std::array<int, 3> lone{-1, -1, -1};  // by operand: the flat dimension only it does not use
  std::size_t slider = 3;
  for (std::size_t d = 0; d < space.dims.size(); ++d) {
    const SearchDim& dim = space.dims[d];
    if (dim.relevant == 7) continue;
    if (dim.relevant != 3 && dim.relevant != 5 && dim.relevant != 6) {
      return unsupported(fmt::format("dimension '{}' is used by one operand only", space.einsum.dim_names[d]));
    }
    if (!dim.window) lone[dim.relevant == 3 ? 2 : dim.relevant == 5 ? 1 : 0] = static_cast<int>(d);
  }
  for (std::size_t o = 0; o < 3; ++o) {
    for (const lower::Axis& axis : space.einsum.operands[o].axes) {
      if (axis.size() < 2) continue;
      if (axis.size() > 2 || (slider != 3 && slider != o))
        return unsupported("a kernel that slides in more than one operand or three ways on one axis");
      slider = o;
    }
  }
  space.slides = slider != 3;
  const auto chains = [&](std::size_t o) {
    return lone[o] < 0 ? std::size_t{1} : space.dims[static_cast<std::size_t>(lone[o])].chains.size();
  };
  std::array<std::size_t, 3> order{0, 1, 2};  // most chains first, the slider before all
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (space.slides && (a == slider) != (b == slider)) return a == slider;
    return chains(a) > chains(b);
  });
  space.y_owner = order[0];
  space.z_owner = order[1];
  space.x_owner = order[2];
  space.y = lone[space.y_owner];
  space.z = lone[space.z_owner];
  for (int d = 0; d < static_cast<int>(space.dims.size()); ++d) {
    if (d != space.y && d != space.z) space.enumerated.push_back(d);
  }
  return Done{};
}

/// Finds two window axes that are alike term by term.
void find_mirror(SearchSpace& space, const SearchOptions& options) {
  std::vector<lower::Axis> windows;
  for (const lower::Axis& axis : space.einsum.operands[space.y_owner].axes) {
    if (axis.size() == 2) windows.push_back(axis);
  }
  if (!space.slides || windows.size() != 2) return;
  for (std::size_t t = 0; t < 2; ++t) {
    const SearchDim& a = space.dims[static_cast<std::size_t>(windows[0][t].dim)];
    const SearchDim& b = space.dims[static_cast<std::size_t>(windows[1][t].dim)];
    const auto same_axes = [&](std::uint32_t along) {
      return ((along >> a.parts[0]) & 1U) == ((along >> b.parts[0]) & 1U);
    };
    const bool alike = a.size == b.size && a.relevant == b.relevant && a.chains.size() == b.chains.size() &&
                       same_axes(options.along_x) && same_axes(options.along_y) &&
                       windows[0][t].coefficient == windows[1][t].coefficient;
    if (!alike || limited(options, a.parts[0]) || limited(options, b.parts[0]) || ordered(options, a.parts[0]) ||
        ordered(options, b.parts[0])) {
      space.mirror.clear();
      return;
    }
    const auto place = [&](int dim) {
      return static_cast<std::size_t>(std::find(space.enumerated.begin(), space.enumerated.end(), dim) -
                                      space.enumerated.begin());
    };
    space.mirror.emplace_back(place(windows[0][t].dim), place(windows[1][t].dim));
  }
}

/// Orders and mesh axes over the merged dimensions.
void place_orders(const SearchOptions& options, int levels, SearchSpace& space) {
  const auto merged = [&](int dim) {
    for (std::size_t d = 0; d < space.dims.size(); ++d) {
      if (space.dims[d].parts[0] == dim) return static_cast<int>(d);
    }
    return -1;
  };
  space.orders.resize(static_cast<std::size_t>(levels));
  bool apart = false;  // a dimension that every operand uses is told to stand inside others
  for (std::size_t l = 0; l < std::min(options.orders.size(), space.orders.size()); ++l) {
    for (const int dim : options.orders[l]) {
      const int d = merged(dim);
      if (d < 0) continue;
      space.orders[l].push_back(d);
      apart = apart || space.dims[static_cast<std::size_t>(d)].relevant == 7;
    }
  }
  std::vector<std::uint32_t> uses;
  for (const SearchDim& dim : space.dims) {
    if (dim.relevant != 7) uses.push_back(dim.relevant);
  }
  std::sort(uses.begin(), uses.end());
  const bool alike = std::adjacent_find(uses.begin(), uses.end()) != uses.end();
  space.ordered_by_case = !space.slides && !apart && !alike;
  const auto merged_mask = [&](std::uint32_t along) {
    std::uint32_t mask = 0;
    for (std::size_t d = 0; d < space.dims.size(); ++d) mask |= ((along >> space.dims[d].parts[0]) & 1U) << d;
    return mask;
  };
  space.along_x = merged_mask(options.along_x);
  space.along_y = merged_mask(options.along_y);
}

/// Nodes are listed in memory. Where the enumerated dimensions make more, the one with most chains gets fewer.
void limit_nodes(const lower::Einsum& einsum, const SearchOptions& options, int levels, std::int64_t units, bool sample,
                 SearchSpace& space) {
  for (;;) {
    double nodes = 1;
    SearchDim* largest = nullptr;
    for (const int d : space.enumerated) {
      SearchDim& dim = space.dims[static_cast<std::size_t>(d)];
      nodes *= static_cast<double>(dim.chains.size());
      if (largest == nullptr || dim.chains.size() > largest->chains.size()) largest = &dim;
    }
    if (nodes <= kMostNodes || largest->chains.size() <= kFewestChains) return;
    SearchDim fewer = *largest;
    fill_chains(einsum, options, !space.perfect, levels, units, largest->chains.size() / 2, !space.slides, sample,
                fewer);
    if (fewer.chains.empty() || fewer.chains.size() >= largest->chains.size()) return;
    *largest = std::move(fewer);
  }
}

}  // namespace

Result<SearchSpace> make_search_space(const lower::Einsum& einsum, const SearchOptions& options, int levels,
                                      std::int64_t units, bool sample) {
  if (einsum.operands.size() != 3)
    return unsupported(fmt::format("searching a kernel of {} operands", einsum.operands.size()));
  SearchSpace space;
  for (int d = 0; d < einsum.rank(); ++d) {
    const SearchDim dim = describe(einsum, d);
    if (dim.size == 1 && !fixed(einsum, options, d)) continue;
    const auto same = std::find_if(space.dims.begin(), space.dims.end(), [&](const SearchDim& other) {
      return !options.imperfect && !dim.window && !other.window && dim.relevant == other.relevant &&
             !fixed(einsum, options, d) && !fixed(einsum, options, other.parts[0]);
    });
    if (same == space.dims.end()) {
      space.dims.push_back(dim);
    } else {
      same->size *= dim.size;
      same->parts.push_back(d);
    }
  }
  if (space.dims.empty()) space.dims.push_back(describe(einsum, 0));  // a kernel of one multiply-accumulate
  const bool windows = std::any_of(space.dims.begin(), space.dims.end(), [](const SearchDim& d) { return d.window; });
  // Imperfect factors of a window are not searched: perfect ones are tried, and the bound is compulsory traffic.
  space.perfect = !options.imperfect || windows;
  for (SearchDim& dim : space.dims) {
    fill_chains(einsum, options, !space.perfect, levels, units,
                sample ? kMostSampled : static_cast<std::size_t>(options.most_chains), !windows, sample, dim);
    if (dim.chains.empty()) {
      return make_error("does-not-fit", Span{},
                        fmt::format("no factors of {} meet the limits on '{}'", dim.size,
                                    einsum.dim_names[static_cast<std::size_t>(dim.parts[0])]));
    }
  }
  space.einsum = merged_einsum(einsum, space.dims);
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    const int before = side_dimension(einsum, o);
    const int after = side_dimension(space.einsum, o);
    if ((before < 0) != (after < 0) || (after >= 0 && space.dims[static_cast<std::size_t>(after)].parts[0] != before)) {
      return unsupported(fmt::format("searching with the side data of operand '{}'", einsum.operands[o].name));
    }
  }
  PL_TRY_STATUS(choose_roles(space));
  limit_nodes(einsum, options, levels, units, sample, space);
  find_mirror(space, options);
  place_orders(options, levels, space);
  space.sampled = options.imperfect && windows;
  for (const SearchDim& dim : space.dims) space.sampled = space.sampled || dim.list == ChainList::sample;
  return space;
}

Mapping unmerge(const SearchSpace& space, const lower::Einsum& einsum, const Mapping& merged) {
  std::array<std::int64_t, lower::kMaxDims> left = einsum.dims;
  Mapping out;
  for (const LevelNest& level : merged.levels) {
    LevelNest nest;
    nest.keeps = level.keeps;
    for (const Loop& loop : level.loops) {
      const std::vector<int>& parts = space.dims[static_cast<std::size_t>(loop.dim)].parts;
      if (parts.size() == 1) {
        nest.loops.push_back({parts[0], loop.bound, loop.kind});
        continue;
      }
      std::int64_t bound = loop.bound;
      for (const int part : parts) {
        const std::int64_t factor = std::gcd(bound, left[static_cast<std::size_t>(part)]);
        bound /= factor;
        left[static_cast<std::size_t>(part)] /= factor;
        if (factor > 1) nest.loops.push_back({part, factor, loop.kind});
      }
    }
    out.levels.push_back(nest);
  }
  return out;
}

}  // namespace plumbline::schedule
