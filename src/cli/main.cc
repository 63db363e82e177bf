#include <fmt/format.h>

#include <exception>
#include <iostream>
#include <new>

#include "cli/command.h"
#include "cli/printable_stream.h"
#include "cli/version.h"

namespace {

void print_help(std::ostream& out) {
  out << "plumbline: from a symptom of an AI accelerator to a release decision, with proof\n\n"
         "usage: plumbline COMMAND …   (plumbline COMMAND --help teaches each)\n\n";
  for (const auto& command : plumbline::cli::commands())
    out << fmt::format("  {:<12}{}\n", command.name, command.summary);
  out << "\nexit codes: 0 release or success, 1 the answer is no, 2 no answer could be given\n";
}

int dispatch(const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  using namespace plumbline;
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help(words.empty() ? err : out);
    return words.empty() ? cli::kCannotSay : cli::kYes;
  }
  if (words[0] == "--version" || words[0] == "-V") {
    out << "plumbline " << plumbline::cli::kVersion << "\n";
    return cli::kYes;
  }
  std::vector<std::string> names;
  for (const auto& command : cli::commands()) {
    if (command.name == words[0]) return command.run({words.begin() + 1, words.end()}, out, err);
    names.emplace_back(command.name);
  }
  return cli::report_errors(
      {make_error("usage", {}, fmt::format("unknown command '{}'", words[0]), suggest(words[0], names))}, err);
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  plumbline::cli::PrintableBuffer out_buffer(std::cout);
  plumbline::cli::PrintableBuffer err_buffer(std::cerr);
  std::ostream out(&out_buffer);
  std::ostream err(&err_buffer);
  try {
    const int code = dispatch({argv + 1, argv + argc}, out, err);
    out_buffer.finish();
    if (!out || !std::cout) {
      err << plumbline::render(plumbline::make_error("unwritable", {}, "cannot write to standard output"));
      return plumbline::cli::kCannotSay;
    }
    return code;
  } catch (const std::bad_alloc&) {
    err << "error: out of memory\n";
  } catch (const std::exception& e) {
    err << "error: " << e.what()
        << "\nhelp: this is a fault of Plumbline; please report it with the input that shows it\n";
  }
  return plumbline::cli::kCannotSay;
}
