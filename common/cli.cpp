#include "common/cli.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <span>
#include <string_view>

#include "common/error.hpp"
#include "common/help.hpp"
#include "common/record.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"

namespace verbscope {

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

int report(const std::exception& error, int exit_code) {
  print_error(error.what());
  return exit_code;
}

struct Unit {
  std::string_view name;
  double factor;
};

// Removes the leading number from `text` and returns it.
double take_number(std::string_view& text, const std::string& option) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool begins_well = !text.empty() && (text[0] == '.' || (text[0] >= '0' && text[0] <= '9'));
  if (!begins_well || error != std::errc()) fail_usage("{}: expected a time such as 2ms, got \"{}\"", option, text);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

constexpr std::size_t kMaxHelpWidth = 120;

// Prints the help of `app`, or of the subcommand in use.
void print_help(const CLI::App& app, const std::string& program) {
  const auto commands = app.get_subcommands();
  if (!commands.empty()) return print_help(*commands.front(), program + " " + commands.front()->get_name());
  const std::size_t width = terminal_width(stdout);
  print_own_text(stdout, render(help_page(app, program), width == 0 ? kHelpWidth : std::min(width, kMaxHelpWidth),
                                shows_colours(stdout)));
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Rejects arguments that no option accepts; the message names the first one and suggests a similar option.
void reject_extras(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands()) reject_extras(*command);
  const std::vector<std::string> extras = app.remaining();
  const auto option =
      std::ranges::find_if(extras, [](const std::string& text) { return text.size() > 1 && text.starts_with("-"); });
  if (option != extras.end()) {
    const std::string name = option->substr(0, option->find('='));
    fail_usage("unknown option {}{}", name, did_you_mean(name, option_names(app)));
  }
  if (!extras.empty()) fail_usage("unexpected argument \"{}\"; see --help", extras.front());
}

// "--post-list=4" -> "--post_list=4". Other arguments are unchanged.
std::string normalise_option(std::string_view argument) {
  std::string out(argument);
  if (argument.size() < 3 || argument.substr(0, 2) != "--") return out;
  const auto name_end = out.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size()));
  std::replace(out.begin() + 2, name_end, '-', '_');
  return out;
}

}  // namespace

int run_main(const char* program, int argc, char** argv, const std::function<int(int, char**)>& body) {
  try {
    begin_output(program);
    std::vector<std::string> arguments(argv, argv + argc);
    hide_secrets(argc, argv);
    for (std::size_t i = 1; i < arguments.size() && arguments[i] != "--"; ++i) {
      arguments[i] = normalise_option(arguments[i]);
    }
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (auto& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const int exit_code = body(argc, pointers.data());
    check_standard_output();
    return exit_code;
  } catch (const CLI::Success&) {
    return 0;
  } catch (const CLI::ParseError& error) {
    return report(error, kWrongUsage);
  } catch (const UsageError& error) {
    return report(error, kWrongUsage);
  } catch (const BrokenPipe&) {
    return kExitBrokenPipe;
  } catch (const InterruptedError& error) {
    drop_blocked_output();
    return report(error, kExitInterrupted);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(Error(fmt::format("cannot use \"{}\": {}", error.path1().string(), error.code().message())), kFailed);
  } catch (const std::exception& error) {
    return report(error, kFailed);
  }
}

namespace {

// Flags accept no value, or yes or no.
void check_flags(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() != 0 || option->get_positional()) continue;
    option->check([](const std::string& text) {
      const bool known = text == "true" || text == "false" || same_word(text, "yes") || same_word(text, "no");
      return known ? std::string() : fmt::format("expected no value, yes or no, got \"{}\"", text);
    });
  }
  for (CLI::App* command : app.get_subcommands({})) check_flags(*command);
}

// Rejects "--name=".
void reject_empty_values(int argc, char** argv) {
  for (const std::string_view argument : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    if (argument == "--") return;
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      fail_usage("{}: expected a value, got nothing", argument.substr(0, argument.size() - 1));
    }
  }
}

// Rejects empty values: they come from unset shell variables.
void reject_empty_words(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (std::ranges::find(values, "") != values.end()) fail_usage("{}: expected a value, got \"\"", option->get_name());
  }
  for (const CLI::App* command : app.get_subcommands()) reject_empty_words(*command);
}

}  // namespace

void parse_args(CLI::App& app, int argc, char** argv) {
  reject_empty_values(argc, argv);
  check_flags(app);
  const BuildInfo build = build_info();
  app.set_version_flag("-V,--version", fmt::format("verbscope {} ({})", build.version, build.git_revision));
  try {
    app.parse(argc, argv);
    reject_empty_words(app);
  } catch (const CLI::CallForHelp&) {
    print_help(app, on_one_line(std::filesystem::path(argv[0]).filename().string()));
    throw;
  } catch (const CLI::CallForVersion& version) {
    print_format(stdout, "{}\n", version.what());
    throw;
  } catch (const CLI::ExtrasError&) {
    reject_extras(app);
    throw;
  }
}

Picos parse_duration(std::string_view text, const std::string& option) {
  static constexpr Unit kUnits[] = {{"ps", 1},   {"ns", 1e3}, {"us", 1e6},   {"ms", 1e9},
                                    {"s", 1e12}, {"", 1e12},  {"min", 60e12}};
  std::string_view rest = text;
  const double number = take_number(rest, option);
  const auto* unit = std::ranges::find(kUnits, rest, &Unit::name);
  if (unit == std::end(kUnits))
    fail_usage("{}: \"{}\" has no unit of time (allowed: ps, ns, us, ms, s, min)", option, text);
  const double picos = number * unit->factor;
  if (!(picos < 9.2e18)) fail_usage("{}: \"{}\" is longer than 106 days", option, text);
  return Picos(std::llround(picos));
}

}  // namespace verbscope
