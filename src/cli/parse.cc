#include "cli/parse.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/diagnostic.h"

namespace plumbline::cli {

std::optional<int> parse_arguments(CLI::App& app, const Arguments& arguments, std::ostream& out, std::ostream& err) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 takes them last first
  try {
    app.parse(reversed);
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
