// replay_NAME FOLDER...: feeds a fuzz target every matching file below the folders, each whole, cut short and damaged
// in seeded ways. A crash or a failed check ends the process; that is the test.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "core/random.h"
#include "fuzz_target.h"

namespace {

constexpr std::size_t kCuts = 24;              // prefixes tried per file
constexpr std::size_t kDamaged = 48;           // damaged copies tried per file
constexpr std::size_t kLargestSeed = 1 << 16;  // bytes; larger files are fed whole only

bool wanted(const std::string& name) {
  std::istringstream endings{std::string(kSeedEndings)};
  for (std::string ending; endings >> ending;) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

void feed(const std::string& bytes) {
  try {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  } catch (const std::exception& failure) {
    std::ofstream("replay-failed-input", std::ios::binary) << bytes;
    std::fprintf(stderr, "%s\nthe input is in replay-failed-input\n", failure.what());
    std::exit(1);
  }
}

// A copy with up to four edits: a byte changed, a stretch doubled, a stretch dropped, or a telling character put in.
std::string damaged(std::string bytes, plumbline::RandomStream& random) {
  constexpr std::string_view kTelling = "{}[]:,#&*!|>'\"%@`-?~\0\n\t\xff\x80";
  for (std::uint64_t edits = 1 + random.next_below(4); edits > 0 && !bytes.empty(); --edits) {
    const std::size_t at = random.next_below(bytes.size());
    const std::size_t length = 1 + random.next_below(std::min<std::size_t>(16, bytes.size() - at));
    switch (random.next_below(4)) {
      case 0:
        bytes[at] = static_cast<char>(random.next_below(256));
        break;
      case 1:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 2:
        bytes.erase(at, length);
        break;
      default:
        bytes.insert(at, 1, kTelling[random.next_below(kTelling.size())]);
        break;
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    for (const auto& item : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (item.is_regular_file() && wanted(item.path().filename().string())) files.push_back(item.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, "replay: no input below the folders given\n");
    return 1;
  }
  std::size_t inputs = 0;
  for (const auto& path : files) {
    std::ifstream stream(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    feed(bytes);
    ++inputs;
    if (bytes.size() > kLargestSeed) continue;
    for (std::size_t i = 0; i < kCuts; ++i) feed(bytes.substr(0, bytes.size() * i / kCuts));
    plumbline::RandomStream random(20240229, "replay", bytes.size());
    for (std::size_t i = 0; i < kDamaged; ++i) feed(damaged(bytes, random));
    inputs += kCuts + kDamaged;
  }
  std::printf("%zu files, %zu inputs\n", files.size(), inputs);
  return 0;
}
