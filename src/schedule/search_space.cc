#include "schedule/search_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "schedule/side_data.h"

namespace plumbline::schedule {
namespace {

Diagnostic unsupported(std::string message) { return make_error("unsupported", Span{}, std::move(message)); }

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t f = 1; f <= n / f; ++f) {
    if (n % f != 0) continue;
    small.push_back(f);
    if (f != n / f) large.push_back(n / f);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

/// The least tile for every number of passes over `n`: about 2·√n of them.
std::vector<std::int64_t> distinct_passes(std::int64_t n) {
  std::vector<std::int64_t> tiles;
  for (std::int64_t tile = 1; tile <= n;) {
    tiles.push_back(tile);
    const std::int64_t count = (n + tile - 1) / tile;
    if (count == 1) break;
    tile = (n + count - 2) / (count - 1);  // the least tile with fewer passes
  }
  return tiles;
}

bool limited(const SearchOptions& options, int dim) {
  return std::any_of(options.factors.begin(), options.factors.end(),
                     [&](const FactorBound& f) { return f.dim == dim; });
}

/// A dimension that must stay itself: it carries a limit, or groups of side data run along it.
bool fixed(const lower::Einsum& einsum, const SearchOptions& options, int dim) {
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    if (side_dimension(einsum, o) == dim) return true;
  }
  return limited(options, dim);
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

/// Whether a chain meets every limit on one dimension.
bool allowed(const Chain& c, int dim, const SearchOptions& options, int levels) {
  for (const FactorBound& limit : options.factors) {
    if (limit.dim != dim) continue;
    std::int64_t factor = 1;
    if (limit.spatial) {
      factor = limit.level == levels - 2 ? c.copies : 1;
    } else {
      factor =
          limit.level == levels - 1 ? c.extent[static_cast<std::size_t>(limit.level)] : c.trips(limit.level, levels);
    }
    if (factor < limit.fewest || factor > limit.most) return false;
  }
  return true;
}

std::int64_t passes(std::int64_t size, std::int64_t tile) { return (size + tile - 1) / tile; }

/// Sums over the passes of a finished chain.
void measure(Chain& c, std::int64_t size, int levels) {
  const auto last = static_cast<std::size_t>(levels - 1);
  const std::int64_t registers = c.extent[last];
  c.visits[last] = static_cast<double>(passes(size, c.array));
  c.delivered[last] = static_cast<double>(passes(size, registers));
  for (std::size_t l = 0; l < last; ++l) {
    const std::int64_t tile = c.extent[l];
    const std::int64_t whole = size / tile;
    const std::int64_t rest = size % tile;
    c.visits[l] = static_cast<double>(passes(size, tile));
    c.delivered[l] = static_cast<double>(whole * std::min(c.copies, passes(tile, registers)) +
                                         (rest == 0 ? 0 : std::min(c.copies, passes(rest, registers))));
  }
  for (std::size_t l = 0; l <= last; ++l) c.held[l] = static_cast<double>(std::min(c.extent[l], size));
  const std::int64_t full = (size - 1) / c.array;
  c.steps = static_cast<double>(full * registers + std::min(registers, size - full * c.array));
}

/// A dimension with more chains than this cannot be searched in any sensible time.
constexpr std::size_t kMostChains = 300'000;

/// Perfect chains, or of the imperfect ones the least that reach a given number of passes at every level: any other
/// chain holds as much, moves as much and uses as many copies as one of these.
class ChainMaker {
 public:
  ChainMaker(const lower::Einsum& einsum, SearchDim& dim, std::int64_t units, const SearchOptions& options, int levels)
      : dim_(dim), units_(units), options_(options), levels_(levels) {
    // Of a merged dimension the divisors are products of its parts' divisors.
    for (const int part : dim.parts) {
      std::vector<std::int64_t> next;
      for (const std::int64_t f : divisors(einsum.dims[static_cast<std::size_t>(part)])) {
        for (const std::int64_t g : divisors_) next.push_back(f * g);
      }
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      divisors_ = std::move(next);
    }
  }

  /// False when there are too many.
  bool run() {
    // A dimension every operand uses separates the problem into parts that share nothing. Its loops may as well stand
    // outermost: inside they only make tiles larger.
    const bool apart = dim_.relevant == 7 && !dim_.window && !limited(options_, dim_.parts[0]);
    if (options_.imperfect && dim_.size > kLargestImperfect) return false;
    for (const std::int64_t registers : tiles_of(dim_.size)) {
      if ((apart || options_.one_register) && registers > 1) break;
      for (const std::int64_t copies : tiles_of(passes(dim_.size, registers))) {
        if (copies > units_) break;
        Chain chain;
        chain.extent[static_cast<std::size_t>(levels_ - 1)] = registers;
        chain.copies = copies;
        chain.array = registers * copies;
        if (!extend(chain, levels_ - 2, chain.array, apart)) return false;
      }
    }
    return true;
  }

 private:
  /// The number of distinct tiles grows with the square root of the size, and chains nest three of them.
  static constexpr std::int64_t kLargestImperfect = std::int64_t{1} << 20;

  [[nodiscard]] std::vector<std::int64_t> tiles_of(std::int64_t n) const {
    if (options_.imperfect) return distinct_passes(n);
    std::vector<std::int64_t> factors;
    for (const std::int64_t f : divisors_) {
      if (f > n) break;
      if (n % f == 0) factors.push_back(f);
    }
    return factors;
  }

  /// The levels outside the array, the innermost first; `inner` is the extent of the tile below.
  bool extend(Chain& chain, int level, std::int64_t inner, bool apart) {
    if (level == 0) {
      chain.extent[0] = std::max(dim_.size, inner);
      measure(chain, dim_.size, levels_);
      chain.extent[0] = dim_.size;
      if (allowed(chain, dim_.parts[0], options_, levels_)) dim_.chains.push_back(chain);
      return dim_.chains.size() <= kMostChains;
    }
    for (const std::int64_t trips : tiles_of(passes(dim_.size, inner))) {
      if (apart && trips > 1) break;
      chain.extent[static_cast<std::size_t>(level)] = trips * inner;
      if (!extend(chain, level - 1, trips * inner, apart)) return false;
    }
    return true;
  }

  SearchDim& dim_;
  std::int64_t units_;
  const SearchOptions& options_;
  int levels_;
  std::vector<std::int64_t> divisors_{1};
};

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
    const bool alike =
        a.size == b.size && a.relevant == b.relevant && windows[0][t].coefficient == windows[1][t].coefficient;
    if (!alike || limited(options, a.parts[0]) || limited(options, b.parts[0])) {
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

}  // namespace

std::int64_t Chain::trips(int block, int levels) const {
  const auto b = static_cast<std::size_t>(block);
  if (block + 1 == levels) return extent[b];
  const std::int64_t inner = block + 2 == levels ? array : extent[b + 1];
  return passes(extent[b], inner);
}

Result<SearchSpace> make_search_space(const lower::Einsum& einsum, const SearchOptions& options, int levels,
                                      std::int64_t units) {
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
  for (SearchDim& dim : space.dims) {
    if (options.imperfect && dim.window) return unsupported("imperfect factors of a sliding window");
    if (!ChainMaker(einsum, dim, units, options, levels).run()) {
      return make_error("too-large", Span{},
                        fmt::format("more than {} ways to factor dimension '{}' of {}", kMostChains,
                                    einsum.dim_names[static_cast<std::size_t>(dim.parts[0])], dim.size),
                        "limit its factors");
    }
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
  find_mirror(space, options);
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
