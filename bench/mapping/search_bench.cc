#include <cstdio>
#include <cstdlib>

#include "problems.h"
#include "rows.h"
#include "schedule/search.h"

namespace plumbline::bench {
namespace {

using namespace plumbline::schedule;

/// Seconds to a proven energy-delay optimum; stops the program when the gap does not close.
double prove(const lower::Einsum& einsum, const char* name, bool imperfect = false) {
  double seconds = 0;
  SearchOptions options;
  options.objectives = {Objective::energy_delay, Objective::energy};
  options.imperfect = imperfect;
  seconds = seconds_of([&] {
    const auto found = search_mapping(narrow(einsum), reference_hierarchy(), reference_rates(), options);
    if (!found.ok()) {
      std::fprintf(stderr, "%s: %s\n", name, render(found.errors()).c_str());
      std::abort();
    }
    const Certificate& c = found->certificate;
    double macs = static_cast<double>(found->counts.macs);
    std::fprintf(stderr, "%-28s energy/mac %.4f cycles %lld gap %.3g nodes %lld opened %lld evaluated %lld", name,
                 found->energy / macs, static_cast<long long>(found->counts.cycles_overlapped), c.gap,
                 static_cast<long long>(c.nodes), static_cast<long long>(c.opened),
                 static_cast<long long>(c.evaluated));
    if (c.gap > 1e-9) std::abort();
  });
  std::fprintf(stderr, " seconds %.3f\n", seconds);
  return seconds;
}

}  // namespace

Rows search_rows(const Filter& wanted) {
  Rows rows;
  if (wanted("map_gemm4096_edp_s"))
    rows.push_back({"map_gemm4096_edp_s", prove(lower::gemm_einsum(4096, 4096, 4096), "gemm 4096")});
  if (wanted("map_conv4_edp_s"))
    rows.push_back({"map_conv4_edp_s", prove(conv(256, 256, 14, 14, 3, 3, 1), "conv4 3x3")});
  if (wanted("map_ragged_gemm_s")) {
    const double vit = prove(lower::gemm_einsum(197, 768, 768), "gemm 197x768x768 ragged", true);
    rows.push_back(
        {"map_ragged_gemm_s", vit + prove(lower::gemm_einsum(784, 128, 1152), "gemm 784x128x1152 ragged", true)});
  }
  if (wanted("map_resnet50_bert_edp_s")) {
    double seconds = 0;
    for (const Layer& layer : resnet50_bert_layers()) seconds += prove(layer.einsum, layer.name.c_str());
    rows.push_back({"map_resnet50_bert_edp_s", seconds});
  }
  return rows;
}

}  // namespace plumbline::bench
