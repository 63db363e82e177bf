#pragma once
// Limits of the model readers and of shape inference: hostile input ends in a diagnostic, not in a full memory.
#include <cstddef>
#include <cstdint>

namespace plumbline::ingest {

/// Bytes of one model file; a protobuf message cannot be longer than 2^31 - 1 bytes.
inline constexpr std::size_t kMaxModelBytes = (1ULL << 31U) - 1;
inline constexpr std::size_t kMaxGraphNodes = 1000000;
/// Sub-messages and strings of one model file. Each costs about 100 bytes once decoded and as little as 2 in the file.
inline constexpr std::size_t kMaxModelItems = 10000000;
/// Bytes of a tensor, node or attribute name.
inline constexpr std::size_t kMaxNameBytes = 4096;
inline constexpr std::size_t kMaxRank = 32;
/// Size of one dimension, and elements of one tensor: products of these with an element's bits stay far below 2^63.
inline constexpr std::int64_t kMaxExtent = 1LL << 40U;
inline constexpr std::int64_t kMaxElements = 1LL << 50U;
/// Kernel sizes, strides, dilations and pads.
inline constexpr std::int64_t kMaxWindow = 1LL << 20U;
/// Elements of a tensor whose contents are followed by shape inference, and of all such tensors of a graph together.
inline constexpr std::size_t kMaxFollowedElements = 4096;
inline constexpr std::size_t kMaxFollowedTotal = 1U << 24U;

/// Opsets of the standard domain whose operators are understood.
inline constexpr std::int64_t kFirstOpset = 7;
inline constexpr std::int64_t kLastOpset = 21;

}  // namespace plumbline::ingest
