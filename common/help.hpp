// The text of --help and `verbscope list NAME`: options in groups, each with its allowed values and default.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"

namespace CLI {
class App;
}

namespace verbscope {

struct HelpEntry {
  std::string name;  // "-s, --size BYTES"
  std::string text;  // "payload [0 to 2G; default 64]"
};

struct HelpGroup {
  std::string title;
  std::vector<HelpEntry> entries;
};

struct HelpPage {
  std::string summary, usage;
  std::vector<HelpGroup> groups;
  std::string footer;  // printed unchanged
};

// The description of an option, in the terms of OptionTable::describe.
struct OptionWords {
  std::string type;  // "integer", "bytes", "number", "string", "boolean" or "duration"
  Json fallback;     // null: the program chooses
  Json allowed;      // a list of words, {"min", "max"}, {"zero"}, a sentence, or null
};

// The placeholder of the value: "N", "BYTES", "WORD"; empty for a flag.
std::string value_name(const OptionWords& option);
// "RC, UC or UD", "0 to 2G", "more than 0"; empty if everything is allowed.
std::string allowed_text(const OptionWords& option);
// Empty if there is none to show.
std::string default_text(const OptionWords& option);
// The help text, followed by both in brackets.
std::string entry_text(const std::string& help, const std::string& allowed, const std::string& fallback);

// The options of `app` in the groups and order in which they were added. `program`: the command that precedes them.
HelpPage help_page(const CLI::App& app, const std::string& program);

inline constexpr std::size_t kHelpWidth = 80;  // if the output is not a terminal

// The page in lines of at most `width` bytes, except the footer. Titles are emphasised if `styled`.
std::string render(const HelpPage& page, std::size_t width, bool styled);

}  // namespace verbscope
