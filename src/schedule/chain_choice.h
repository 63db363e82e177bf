#pragma once
// What was tried and decided about chains of kernels (lower/chains.h).
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace plumbline::schedule {

/// One way to cut a chain of kernels, beside the schedule without it. Bytes of one batch.
struct ChainAlternative {
  std::int64_t chunks = 0;
  std::int64_t units = 0;  ///< rows of tokens, groups or images in a chunk
  std::int64_t rows = 0;   ///< output rows of a chunk; 0 = not cut along them
  bool keeps_parameters = false;
  std::string failure;                  ///< why it cannot be scheduled; empty = it can
  double value = 0;                     ///< of the first objective, all kernels of the shape
  std::vector<double> then;             ///< of the later objectives, in order
  std::int64_t off_chip_saved = 0;      ///< bytes of weights and activations; negative = more
  std::int64_t spill_saved = 0;         ///< bytes less written to spilled buffers
  std::int64_t peak_saved = 0;          ///< on-chip bytes
  std::int64_t extra_weights = 0;       ///< bytes of parameters read from off chip beyond those without it
  std::int64_t extra_weight_reads = 0;  ///< likewise just outside the array
};

/// Chains alike in every layer, and what was decided about them.
struct ChainChoice {
  std::string kind;                  ///< mlp | attention | conv
  std::string unit;                  ///< what is cut: rows (of tokens) | groups | images
  std::vector<std::string> kernels;  ///< names of the first chain's, in order
  std::int64_t repeats = 0;
  std::int64_t between_bytes = 0;  ///< what is between the first chain's kernels, whole
  double value_without = 0;
  std::vector<ChainAlternative> alternatives;
  std::size_t best = 0;  ///< of the least value; meaningless without alternatives
  bool taken = false;
  std::string reason;
};

}  // namespace plumbline::schedule
