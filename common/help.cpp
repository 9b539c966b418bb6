#include "common/help.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/option_values.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kTextColumn = 28;

// A number in the form of the option: bytes as "4k".
std::string number_of(const OptionWords& option, const Json& value) {
  const bool is_bytes = option.type == "bytes" && value.is_number_integer() && value >= 0;
  return is_bytes ? bytes_text(value.get<std::uint64_t>()) : dump_json(value);
}

// Shortens CLI11's type names, for options of subcommands, which have no OptionTable.
std::string shorter_type(const std::string& type) {
  if (type == "INT" || type == "UINT") return "N";
  return type == "FLOAT" ? "X" : type;
}

HelpEntry entry_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  std::string allowed = option.get_option_text();
  if (allowed.empty() && colon != type.npos) allowed = type.substr(colon + 1);
  std::string name;
  for (const std::string& each : option.get_snames()) name += (name.empty() ? "-" : ", -") + each;
  for (const std::string& each : option.get_lnames()) name += (name.empty() ? "--" : ", --") + each;
  const bool is_flag = option.get_items_expected_max() == 0;
  if (option.get_positional()) {
    name = option.get_name(true, false);
  } else if (!is_flag) {
    name += " " + shorter_type(type.substr(0, colon));
  }
  if (option.get_expected_max() > 1) name += " ...";
  return {name, entry_text(option.get_description(), is_flag ? "" : allowed, option.get_default_str())};
}

void add_entry(HelpPage& page, const std::string& title, HelpEntry entry) {
  const auto found = std::ranges::find(page.groups, title, &HelpGroup::title);
  HelpGroup& group = found == page.groups.end() ? page.groups.emplace_back(HelpGroup{title, {}}) : *found;
  group.entries.push_back(std::move(entry));
}

std::string usage_of(const CLI::App& app, const std::string& program) {
  std::string usage = program + " [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string dots = option->get_expected_max() > 1 ? "..." : "";
    const std::string name = option->get_name(true, false) + dots;
    usage += option->get_required() ? " " + name : " [" + name + "]";
  }
  return usage + (app.get_subcommands({}).empty() ? "" : " COMMAND");
}

std::string entry_lines(const HelpEntry& entry, std::size_t width) {
  std::string out = "  " + entry.name;
  bool begun = out.size() + 2 > kTextColumn;
  if (begun) out += '\n';
  for (const std::string& line : wrap_words(entry.text, std::max(width, kTextColumn + 20) - kTextColumn)) {
    out += fmt::format("{:{}}{}\n", "", begun ? kTextColumn : kTextColumn - out.size(), line);
    begun = true;
  }
  return out;
}

}  // namespace

std::string value_name(const OptionWords& option) {
  if (option.type == "boolean") return "";
  if (option.type == "integer") return "N";
  if (option.type == "number") return "X";
  if (option.type == "bytes") return "BYTES";
  if (option.type == "duration") return "TIME";
  return option.allowed.is_array() ? "WORD" : "TEXT";
}

std::string allowed_text(const OptionWords& option) {
  const Json& allowed = option.allowed;
  if (allowed.is_string()) return allowed.get<std::string>();
  if (allowed.is_array()) {
    std::vector<std::string> words;
    for (const Json& word : allowed) words.push_back(word.is_string() ? word.get<std::string>() : dump_json(word));
    return or_list(words);
  }
  if (!allowed.is_object()) return "";
  if (allowed.contains("zero")) return allowed.at("zero") == false ? "more than 0" : "";
  return fmt::format("{} to {}", number_of(option, allowed.at("min")), number_of(option, allowed.at("max")));
}

std::string default_text(const OptionWords& option) {
  const Json& value = option.fallback;
  if (value.is_null() || value.is_boolean()) return "";
  if (value.is_string()) return value.get<std::string>();
  return option.type == "duration" ? fmt::format("{:g}s", value.get<double>()) : number_of(option, value);
}

std::string entry_text(const std::string& help, const std::string& allowed, const std::string& fallback) {
  std::string more = allowed;
  if (!fallback.empty()) more += (more.empty() ? "default " : "; default ") + fallback;
  return more.empty() ? help : fmt::format("{} [{}]", help, more);
}

HelpPage help_page(const CLI::App& app, const std::string& program) {
  HelpPage page{app.get_description(), usage_of(app, program), {}, app.get_footer()};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) add_entry(page, "Arguments", entry_of(*option));
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    add_entry(page, "Commands", {command->get_name(), command->get_description()});
  }
  // The options of all programs come last.
  const auto is_common = [&app](const CLI::Option* option) {
    return option == app.get_help_ptr() || option == app.get_version_ptr();
  };
  for (const CLI::Option* option : app.get_options()) {
    const bool shown = !option->get_positional() && !option->get_group().empty() && !is_common(option);
    if (shown) add_entry(page, option->get_group(), entry_of(*option));
  }
  add_entry(page, "Help", {"-h, --help", "print this help"});
  if (app.get_version_ptr() != nullptr) add_entry(page, "Help", {"--version", "print the version"});
  return page;
}

std::string render(const HelpPage& page, std::size_t width, bool styled) {
  const auto title = [styled](const std::string& text) { return styled ? emphasised(text) : text; };
  std::string out;
  for (const std::string& line : wrap_words(page.summary, width)) out += line + '\n';
  if (!page.usage.empty()) out += fmt::format("\n{} {}\n", title("Usage:"), page.usage);
  for (const HelpGroup& group : page.groups) {
    out += fmt::format("\n{}\n", title(group.title + ":"));
    for (const HelpEntry& entry : group.entries) out += entry_lines(entry, width);
  }
  return page.footer.empty() ? out : out + '\n' + page.footer + '\n';
}

}  // namespace verbscope
