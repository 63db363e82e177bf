#include "cli/parse.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/diagnostic.h"

namespace plumbline::cli {
namespace {

// The parser's conversions wrap -1 to 2^64 - 1, cut 2^70 down to 2^63 - 1, read 010 as eight and nan as a number.
std::string number_fault(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const bool whole = type.starts_with("UINT") || type.starts_with("INT");
  if (!whole && !type.starts_with("FLOAT")) return {};
  for (const auto& text : option.results()) {
    const std::string name = option.get_name();
    std::string_view digits = text;
    const bool negative = digits.starts_with("-");
    if (negative) digits.remove_prefix(1);
    const bool plain =
        !digits.empty() && digits.find_first_not_of(whole ? "0123456789" : "0123456789.") == std::string_view::npos;
    const bool octal = whole && digits.size() > 1 && digits.front() == '0';
    if (!plain || octal) {
      return fmt::format("{} takes a plain decimal {}, not '{}'", name, whole ? "whole number" : "number", text);
    }
    if (negative && type.starts_with("UINT")) return fmt::format("{} cannot be negative, but is {}", name, text);
    const bool is_signed = type.starts_with("INT");
    const std::string_view largest = is_signed ? "9223372036854775807" : "18446744073709551615";  // 2^63 - 1, 2^64 - 1
    if (whole && (digits.size() > largest.size() || (digits.size() == largest.size() && digits > largest))) {
      return fmt::format("{} is {}, beyond 2^{}", name, text, is_signed ? 63 : 64);
    }
  }
  return {};
}

}  // namespace

std::optional<int> parse_arguments(CLI::App& app, const Arguments& arguments, std::ostream& out, std::ostream& err) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 takes them last first
  try {
    app.parse(reversed);
    for (const auto* option : app.get_options()) {
      std::string fault = number_fault(*option);
      if (fault.empty()) continue;
      err << render(make_error("usage", {}, std::move(fault),
                               fmt::format("plumbline {} --help lists what it takes", app.get_name())));
      return kCannotSay;
    }
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    out << app.help("plumbline");
    return kYes;
  } catch (const CLI::ParseError& e) {
    std::vector<std::string> flags;
    for (const auto* option : app.get_options()) {
      for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
    }
    std::string help = fmt::format("plumbline {} --help lists what it takes", app.get_name());
    for (const auto& argument : arguments) {
      if (argument.starts_with("--") &&
          std::find(flags.begin(), flags.end(), argument.substr(0, argument.find('='))) == flags.end()) {
        const std::string near = suggest(argument.substr(0, argument.find('=')), flags);
        if (near.starts_with("did you mean")) help = near;
      }
    }
    std::string message = e.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    if (!message.empty()) message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
    err << render(make_error("usage", {}, std::move(message), std::move(help)));
    return kCannotSay;
  }
}

}  // namespace plumbline::cli
