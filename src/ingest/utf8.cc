#include "ingest/utf8.h"

#include <cstddef>
#include <cstdint>

namespace plumbline::ingest {

bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4) return false;
    std::uint32_t code = lead & (0x3FU >> static_cast<unsigned>(more));
    for (int k = 0; k < more; ++k) {
      if (i >= text.size()) return false;
      const auto next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xC0U) != 0x80U) return false;
      code = (code << 6U) | (next & 0x3FU);
    }
    constexpr std::uint32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};  // by number of continuation bytes
    if (code < kSmallest[more] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return false;
  }
  return true;
}

}  // namespace plumbline::ingest
