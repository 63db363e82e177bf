#pragma once
// SHA-256 (FIPS 180-4), for naming inputs and artefacts by content.
#include <string>
#include <string_view>

namespace plumbline {

/// Lower-case hexadecimal digest of `bytes`, 64 characters.
[[nodiscard]] std::string sha256(std::string_view bytes);

}  // namespace plumbline
