#pragma once
#include <string_view>

namespace plumbline::ingest {

/// Is the text well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates)?
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace plumbline::ingest
