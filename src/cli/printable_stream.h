#pragma once
// The last thing before standard output and error: whatever text reaches them, a terminal obeys none of it.
#include <ostream>
#include <streambuf>
#include <string>

namespace plumbline::cli {

/// Passes text on to `sink` as printable() shows it, whichever way writes split it. Of escape sequences only those of
/// weight and colour (ESC [ digits and semicolons m) pass, which our own summaries use.
class PrintableBuffer : public std::streambuf {
 public:
  explicit PrintableBuffer(std::ostream& sink) : sink_(sink) {}
  PrintableBuffer(const PrintableBuffer&) = delete;
  PrintableBuffer& operator=(const PrintableBuffer&) = delete;
  /// Passes on what was held back for want of its end.
  ~PrintableBuffer() override { finish(); }

  /// Flushes everything, a broken last character too.
  void finish();

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  /// Passes on all of held_ but an unfinished end, unless `last`.
  void pass(bool last);

  std::ostream& sink_;
  std::string held_;
};

}  // namespace plumbline::cli
