// Cutting a chain: its kernels become instances of chunks.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lower/chains.h"

namespace plumbline::lower {
namespace {

using Wide = __int128;

/// What one chunk covers: units, and for convolutions rows of each.
struct Chunk {
  std::int64_t units = 1;
  std::int64_t rows = 0;         ///< output rows of the last member; 0 = not cut
  std::int64_t middle_rows = 0;  ///< rows between that are new
  std::int64_t live_rows = 0;    ///< rows between that must be there, those of earlier chunks included
};

std::vector<Chunk> chunks_in(const Chain& chain, const ChainCut& cut) {
  std::vector<Chunk> chunks;
  for (std::int64_t u = 0; u < chain.units; u += cut.units) {
    Chunk chunk;
    chunk.units = std::min(cut.units, chain.units - u);
    if (cut.rows == 0 || cut.rows >= chain.rows) {
      chunk.rows = chain.rows;
      chunk.middle_rows = chunk.live_rows = chain.middle_rows;
      chunks.push_back(chunk);
      continue;
    }
    std::int64_t made = 0;
    for (std::int64_t row = 0; row < chain.rows; row += cut.rows) {
      chunk.rows = std::min(cut.rows, chain.rows - row);
      const bool last = row + chunk.rows == chain.rows;
      const std::int64_t end = (row + chunk.rows - 1) * chain.stride + chain.reach - chain.padding;
      const std::int64_t until = last ? chain.middle_rows : std::clamp(end, made, chain.middle_rows);
      const std::int64_t from = std::clamp<std::int64_t>(row * chain.stride - chain.padding, 0, made);
      chunk.middle_rows = until - made;
      chunk.live_rows = until - from;
      made = until;
      chunks.push_back(chunk);
    }
  }
  return chunks;
}

class Cutting {
 public:
  Cutting(const KernelGraph& graph, const std::vector<ChainCut>& cuts) : graph_(graph) {
    out_.model = graph.model;
    out_.buffers = graph.buffers;
    member_of_.assign(graph.instances.size(), nullptr);
    for (const ChainCut& cut : cuts) {
      for (const ChainMember& member : graph.chains[cut.chain].members) {
        PL_CHECK(member_of_[static_cast<std::size_t>(member.instance)] == nullptr);
        member_of_[static_cast<std::size_t>(member.instance)] = &cut;
      }
    }
  }

  KernelGraph run() {
    for (std::size_t i = 0; i < graph_.instances.size(); ++i) {
      const ChainCut* cut = member_of_[i];
      if (cut == nullptr) {
        append(out_, graph_.kernels[graph_.instances[i].kernel.at()], graph_.instances[i]);
      } else if (graph_.chains[cut->chain].members.back().instance == static_cast<std::int32_t>(i)) {
        emit_chain(graph_.chains[cut->chain], *cut);
      }
    }
    return std::move(out_);
  }

 private:
  void emit_chain(const Chain& chain, const ChainCut& cut) {
    const std::vector<Chunk> chunks = chunks_in(chain, cut);
    const std::int64_t kept = cut.keeps_parameters ? parameter_bytes(chain) : 0;
    std::vector<bool> begun(chain.members.size(), false);
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      for (std::size_t m = 0; m < chain.members.size(); ++m) {
        const bool last = m + 1 == chain.members.size();
        if (!last && chain.rows > 0 && chunks[c].middle_rows == 0) continue;  // its rows are there already
        emit_chunk(chain, cut, m, chunks[c], fmt::format(" {}/{}", c + 1, chunks.size()), begun[m], kept);
        begun[m] = true;
      }
    }
    // What is between exists for one chunk at a time; members take turns, so one copy will do.
    std::int64_t most = 0;
    for (const Chunk& chunk : chunks) {
      most = std::max(most, chain.rows > 0 ? chunk.units * chunk.live_rows : chunk.units);
    }
    const std::int64_t parts = chain.units * (chain.rows > 0 ? chain.middle_rows : 1);
    for (const std::int32_t b : chain.between) {
      Buffer& buffer = out_.buffers[static_cast<std::size_t>(b)];
      buffer.bytes = buffer.on_chip = share(buffer.bytes, most, parts);
    }
  }

  [[nodiscard]] std::int64_t parameter_bytes(const Chain& chain) const {
    std::int64_t bytes = 0;
    std::vector<TensorId> seen;
    for (const ChainMember& member : chain.members) {
      for (const ParameterUse& use : graph_.instances[static_cast<std::size_t>(member.instance)].parameters) {
        if (std::find(seen.begin(), seen.end(), use.tensor) != seen.end()) continue;
        seen.push_back(use.tensor);
        bytes += use.stored;
      }
    }
    return bytes;
  }

  /// Does every member that reads the buffer take its share only? Then a share may be written over when its chunk is
  /// done.
  [[nodiscard]] bool always_cut(const Chain& chain, std::int32_t buffer) const {
    for (const ChainMember& member : chain.members) {
      const auto& reads = graph_.instances[static_cast<std::size_t>(member.instance)].reads;
      for (std::size_t r = 0; r < reads.size(); ++r) {
        if (reads[r].buffer == buffer && !member.reads_cut[r]) return false;
      }
    }
    return true;
  }

  /// Exact where the finder has checked it, else rounded up.
  static std::int64_t share(std::int64_t whole, std::int64_t part, std::int64_t parts) {
    return static_cast<std::int64_t>((static_cast<Wide>(whole) * part + parts - 1) / parts);
  }

  void emit_chunk(const Chain& chain, const ChainCut& cut, std::size_t m, const Chunk& chunk, const std::string& suffix,
                  bool again, std::int64_t kept) {
    const ChainMember& member = chain.members[m];
    const bool last = m + 1 == chain.members.size();
    Instance instance = graph_.instances[static_cast<std::size_t>(member.instance)];
    Kernel kernel = graph_.kernels[instance.kernel.at()];
    const std::int64_t rows = last ? chunk.rows : chunk.middle_rows;
    const std::int64_t part = chunk.units * (chain.rows > 0 ? rows : 1);
    const std::int64_t parts = chain.units * (chain.rows > 0 ? last ? chain.rows : chain.middle_rows : 1);
    if (member.unit_dim >= 0) kernel.einsum.dims[static_cast<std::size_t>(member.unit_dim)] = chunk.units;
    if (member.row_dim >= 0 && chain.rows > 0) kernel.einsum.dims[static_cast<std::size_t>(member.row_dim)] = rows;
    std::int64_t read_by_vector_unit = 0;
    for (std::size_t r = 0; r < instance.reads.size(); ++r) {
      BufferUse& use = instance.reads[r];
      if (member.reads_cut[r]) use.bytes = share(use.bytes, part, parts);
      if (use.operand < 0) read_by_vector_unit += use.bytes;
      use.replaceable = use.replaceable && (cut.rows == 0 || chain.rows == 0) && always_cut(chain, use.buffer);
    }
    for (BufferUse& use : instance.writes) use.bytes = share(use.bytes, part, parts);
    cut_steps(kernel, part, parts, read_by_vector_unit);
    for (ParameterUse& use : instance.parameters) use.kept = again && kept > 0;
    instance.again = again;
    instance.kept_bytes = kept;
    instance.name += suffix;
    append(out_, std::move(kernel), std::move(instance));
  }

  /// A step reads its share of what is as large as the result, and all of what is broadcast.
  static void cut_steps(Kernel& kernel, std::int64_t part, std::int64_t parts, std::int64_t read) {
    std::int64_t before = 0;
    for (VectorStep& step : kernel.steps) {
      before += step.input_bytes;
      step.elements = share(step.elements, part, parts);
      step.operations = share(step.operations, part, parts);
      step.output_bytes = share(step.output_bytes, part, parts);
    }
    // Steps that read nothing stay so; what the instance reads is dealt out in proportion to what they read.
    for (VectorStep& step : kernel.steps) {
      if (step.input_bytes == 0) continue;
      const std::int64_t own = share(step.input_bytes, read, before);
      before -= step.input_bytes;
      step.input_bytes = std::min(own, read);
      read -= step.input_bytes;
    }
  }

  const KernelGraph& graph_;
  std::vector<const ChainCut*> member_of_;  ///< by instance
  KernelGraph out_;
};

}  // namespace

std::int64_t chunks_of(const Chain& chain, const ChainCut& cut) {
  return static_cast<std::int64_t>(chunks_in(chain, cut).size());
}

KernelGraph cut_chains(const KernelGraph& graph, const std::vector<ChainCut>& cuts) {
  return Cutting(graph, cuts).run();
}

}  // namespace plumbline::lower
