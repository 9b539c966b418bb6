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

enum class OptionType { integer, bytes, number, string, boolean, duration };

struct OptionSpec {
  std::string name;    // long name with '_' and without dashes: "post_list"
  std::string letter;  // "l" where -l is its short form; empty: it has none
  std::string group;
  OptionType type = OptionType::string;
  Json default_value;  // null: none
  Json allowed;        // an array of the values allowed, a sentence about them, or null
  // The range of an integer or a number of bytes.
  std::int64_t min = std::numeric_limits<std::int64_t>::min(), max = std::numeric_limits<std::int64_t>::max();
  bool zero = true;  // whether a duration may be 0
  std::string help;
};

struct BenchmarkSpec {
  std::string name;
  std::string summary{}, example{};
  std::vector<OptionSpec> options;

  // The command line of the example: on a simulated cluster, where the benchmark has peers.
  std::string example_line() const;
  // Null when there is no such option.
  const OptionSpec* find(std::string_view option) const;
  // Throws a line that names `where`, the option and those that exist.
  const OptionSpec& require(std::string_view option, const std::string& where) const;
};

// Reads what OptionTable::describe makes, where `allowed` of an integer or a number of bytes is {"min", "max"} and of a
// duration {"zero"}; "summary", "example", "letter" and "group" may be missing. Throws on anything else.
BenchmarkSpec parse_benchmark_spec(std::string_view text, const std::string& where);

// '-' and '_' mean the same in option names: "post-list" gives "post_list".
std::string option_name(std::string_view text);
std::string to_string(OptionType type);

// `value` as the record will have it: "4k" of a number of bytes as 4096, words as they are spelt in `allowed`. Throws
// one line when it has not the option's type or is not allowed. A duration is a number of seconds or a string such as
// "2ms".
Json checked_value(const OptionSpec& option, const Json& value, const std::string& where);

// The value that `text` means for this option, as `--set name=text` gives it; throws when it means none.
Json option_value_from_text(const OptionSpec& option, const std::string& text, const std::string& where);

// One process argument: "--size=60".
std::string option_argument(const std::string& name, const Json& value);

}  // namespace verbscope
