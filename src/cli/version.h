#pragma once

namespace plumbline::cli {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace plumbline::cli
