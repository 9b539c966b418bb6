// The description that a benchmark binary prints of itself (`send_rate --describe`): options with type, default,
// allowed values. Sweeps are checked against it, so the harness holds no list of options of its own.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

enum class OptionType { integer, number, string, boolean, duration };

struct OptionSpec {
  std::string name;  // long name with '_' and without dashes: "post_list"
  OptionType type = OptionType::string;
  Json default_value;  // null: none
  Json allowed;        // an array of the values allowed, a sentence about them, or null
  // The range of an integer.
  std::int64_t min = std::numeric_limits<std::int64_t>::min(), max = std::numeric_limits<std::int64_t>::max();
  bool zero = true;  // whether a duration may be 0
  std::string help;
};

struct BenchmarkSpec {
  std::string name;
  std::vector<OptionSpec> options;

  // Null when there is no such option.
  const OptionSpec* find(std::string_view option) const;
  // Throws a line that names `where`, the option and those that exist.
  const OptionSpec& require(std::string_view option, const std::string& where) const;
};

// Reads {"benchmark", "options": [{"name", "type", "default", "allowed", "help"}]}, where `allowed` of an integer is
// {"min", "max"} and of a duration {"zero"}. Throws on anything else.
BenchmarkSpec parse_benchmark_spec(std::string_view text, const std::string& where);

// '-' and '_' mean the same in option names: "post-list" gives "post_list".
std::string option_name(std::string_view text);
std::string to_string(OptionType type);

// Throws one line when `value` has not the option's type or is not one of its allowed values. A duration is a number of
// seconds or a string such as "2ms".
void check_option_value(const OptionSpec& option, const Json& value, const std::string& where);

// The value that `text` means for this option, as `--set name=text` gives it; throws when it means none.
Json option_value_from_text(const OptionSpec& option, const std::string& text, const std::string& where);

// One process argument: "--size=60".
std::string option_argument(const std::string& name, const Json& value);

}  // namespace verbscope
