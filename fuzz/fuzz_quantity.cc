// Numbers with units, and plain scalars: any text gives a value in range or a diagnostic, never both and never neither.
#include <cmath>

#include "core/check.h"
#include "fuzz_target.h"
#include "ingest/units.h"

const std::string_view kSeedEndings = ".yaml";

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace plumbline;
  using namespace plumbline::ingest;
  Value value = make_scalar(std::string(bytes, bytes + size));
  value.quoted = size % 2 == 1;
  const auto one_answer = [&](auto read) {
    Diagnostics errors;
    const auto number = read(errors);
    PL_CHECK(number.has_value() == errors.empty());
    if (number) PL_CHECK(std::isfinite(static_cast<double>(*number)));
  };
  one_answer([&](Diagnostics& e) { return read_quantity(value, kTime, "2 ms", 0, 1e6, e); });
  one_answer([&](Diagnostics& e) { return read_quantity(value, kBytesPerSecond, "2 GB/s", 1, 1e18, e); });
  one_answer([&](Diagnostics& e) { return read_celsius(value, e); });
  one_answer([&](Diagnostics& e) { return read_percent(value, 0, 1, e); });
  one_answer([&](Diagnostics& e) { return read_number(value, -1e9, 1e9, e); });
  one_answer([&](Diagnostics& e) { return read_integer(value, -100, std::int64_t{1} << 40, e); });
  return 0;
}
