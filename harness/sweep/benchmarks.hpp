// The benchmark programs: their names, binaries, and the description that each prints of itself (`send_rate
// --describe`): options with type, default and allowed values. Sweeps are checked against it, so the harness has no
// list of options of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

enum class OptionType { integer, bytes, number, string, boolean, duration };

struct OptionSpec {
  std::string name;    // long name, with '_' and without leading dashes: "post_list"
  std::string letter;  // "l" for the short form -l; empty: none
  std::string group;
  OptionType type = OptionType::string;
  Json default_value;  // null: none
  // An array of allowed values, {"min", "max"} of a number, {"zero"} of a duration, a sentence that describes the
  // allowed values, or null.
  Json allowed;
  // Range of an integer or a number of bytes.
  std::int64_t min = std::numeric_limits<std::int64_t>::min(), max = std::numeric_limits<std::int64_t>::max();
  bool zero = true;  // true if a duration may be 0
  std::string help;
};

struct BenchmarkSpec {
  std::string name;
  std::string summary{}, example{};
  std::vector<OptionSpec> options;
  bool serves = false;  // it knows --serve (common/served.hpp)

  // The example as a command line; if the benchmark has peers, on a simulated cluster.
  std::string example_line() const;
  // Null if there is no such option.
  const OptionSpec* find(std::string_view option) const;
  // Throws one line with `where`, the option and the existing options.
  const OptionSpec& require(std::string_view option, const std::string& where) const;
};

// Parses the output of OptionTable::describe. `allowed` is {"min", "max"} for an integer or a number of bytes, and
// {"zero"} for a duration. "summary", "example", "serves", "letter" and "group" are optional. Throws on anything else.
BenchmarkSpec parse_benchmark_spec(std::string_view text, const std::string& where);

// Replaces '-' by '_': "post-list" gives "post_list".
std::string option_name(std::string_view text);
std::string to_string(OptionType type);

// `value` in the form in which records contain it: "4k" bytes as 4096, words as spelt in `allowed`. Throws one line if
// it has the wrong type or is not allowed. A duration is a number of seconds or a string such as "2ms".
Json checked_value(const OptionSpec& option, const Json& value, const std::string& where);

// Converts the text of `--set name=text` to a value of the option. Throws if that is not possible.
Json option_value_from_text(const OptionSpec& option, const std::string& text, const std::string& where);

// One command-line argument: "--size=60".
std::string option_argument(const std::string& name, const Json& value);

// The names of all benchmarks, in the order of verbscope_benchmark() calls in CMake.
std::vector<std::string> benchmark_names();

// The path of a benchmark's binary in `folder`. Throws Error if benchmark_names() does not contain the name.
std::filesystem::path benchmark_binary(const std::filesystem::path& folder, const std::string& benchmark);

// Runs `binary --describe`. Throws if it fails, takes more than ten seconds, or prints anything else.
BenchmarkSpec describe_benchmark(const std::filesystem::path& binary);

}  // namespace verbscope
