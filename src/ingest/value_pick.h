#pragma once
// Selecting elements of followed contents by their offsets.
#include <cstddef>
#include <vector>

#include "ingest/infer_step.h"

namespace plumbline::ingest {

/// The elements at offsets `from`, which must be inside.
[[nodiscard]] inline Contents pick(const Contents& contents, const std::vector<std::size_t>& from) {
  return std::visit(
      [&](const auto& elements) {
        std::decay_t<decltype(elements)> out;
        out.reserve(from.size());
        for (const std::size_t offset : from) out.push_back(elements.at(offset));
        return Contents(std::move(out));
      },
      contents);
}

}  // namespace plumbline::ingest
