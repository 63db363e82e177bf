#pragma once
// The network topologies an accelerator file may name; rows of topologies.inc.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumbline::ingest {

enum class NetworkShape : std::uint8_t { chain, bus, tree, mesh };

struct Topology {
  std::string_view name;
  NetworkShape shape = NetworkShape::chain;
  bool forks = false;  ///< copies a word on the way to several receivers
  bool joins = false;  ///< adds sums on the way
  std::string_view meaning;
};

inline constexpr Topology kTopologies[] = {
#define TOPOLOGY(name, shape, forks, joins, meaning) {name, NetworkShape::shape, forks, joins, meaning},
#include "ingest/topologies.inc"
#undef TOPOLOGY
};

/// nullptr when no row is called so.
[[nodiscard]] inline const Topology* find_topology(std::string_view name) {
  for (const Topology& topology : kTopologies) {
    if (topology.name == name) return &topology;
  }
  return nullptr;
}

[[nodiscard]] inline std::vector<std::string> topology_names() {
  std::vector<std::string> names;
  for (const Topology& topology : kTopologies) names.emplace_back(topology.name);
  return names;
}

}  // namespace plumbline::ingest
