#pragma once
// What each fuzz_*.cc offers to libFuzzer and to replay.cc.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/source.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

/// Name endings of the files that are worth feeding to this target, separated by blanks.
extern const std::string_view kSeedEndings;

namespace plumbline::fuzz {

inline SourceRef as_source(const std::uint8_t* bytes, std::size_t size) {
  return std::make_shared<const Source>(Source{"input", std::string(bytes, bytes + size)});
}

}  // namespace plumbline::fuzz
