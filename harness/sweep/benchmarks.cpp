#include "harness/sweep/benchmarks.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <sstream>

#include "common/cli.hpp"
#include "common/error.hpp"
#include "common/option_values.hpp"
#include "common/text.hpp"
#include "harness/process/child.hpp"

namespace verbscope {
namespace {

constexpr std::array<std::pair<OptionType, const char*>, 6> kTypeNames = {{{OptionType::integer, "integer"},
                                                                           {OptionType::bytes, "bytes"},
                                                                           {OptionType::number, "number"},
                                                                           {OptionType::string, "string"},
                                                                           {OptionType::boolean, "boolean"},
                                                                           {OptionType::duration, "duration"}}};

OptionType option_type(const std::string& text, const std::string& where) {
  for (const auto& [type, name] : kTypeNames) {
    if (text == name) return type;
  }
  fail("{}: type: expected integer, bytes, number, string, boolean or duration, got \"{}\"", where, text);
}

std::string expected_text(OptionType type) {
  if (type == OptionType::duration) return "a duration (seconds, or a string such as \"2ms\")";
  if (type == OptionType::bytes) return "a number of bytes (a whole number, or a string such as \"4k\")";
  return (type == OptionType::integer ? "an " : "a ") + to_string(type);
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

// The duration as the benchmark parses it; empty if the text is not a duration.
std::optional<Picos> duration_of(const Json& value) {
  if (!value.is_number() && !value.is_string()) return std::nullopt;
  try {
    return parse_duration(text_of(value), "duration");
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

bool has_type(OptionType type, const Json& value) {
  switch (type) {
    case OptionType::integer:
      return value.is_number_integer();
    case OptionType::bytes:
      return value.is_number_integer() || value.is_string();
    case OptionType::number:
      return value.is_number();
    case OptionType::string:
      return value.is_string();
    case OptionType::boolean:
      return value.is_boolean();
    case OptionType::duration:
      return duration_of(value).has_value();
  }
  return false;
}

// Reads the bounds in `allowed` of a number or a duration.
void read_bounds(OptionSpec& option, const std::string& where) {
  JsonFields fields(option.allowed, where + ": allowed");
  if (option.type == OptionType::integer || option.type == OptionType::bytes) {
    option.min = fields.require<std::int64_t>("min");
    option.max = fields.require<std::int64_t>("max");
  }
  if (option.type == OptionType::duration) option.zero = fields.require<bool>("zero");
  fields.reject_unknown();
}

// Parses a word or a number of bytes that is given as text.
Json value_of_text(const OptionSpec& option, const std::string& text, const std::string& what) {
  try {
    if (option.allowed.is_array()) return parse_word(text, what, option.allowed);
    const auto low = static_cast<std::uint64_t>(std::max<std::int64_t>(option.min, 0));
    return parse_bytes(text, what, low, static_cast<std::uint64_t>(option.max));
  } catch (const UsageError& error) {
    throw Error(error.what());  // the value may come from a sweep file instead of the command line
  }
}

OptionSpec parse_option(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  OptionSpec option;
  option.name = option_name(fields.require<std::string>("name"));
  option.letter = fields.optional<std::string>("letter", "");
  option.group = fields.optional<std::string>("group", "");
  option.type = option_type(fields.require<std::string>("type"), where);
  option.default_value = fields.optional<Json>("default", nullptr);
  option.allowed = fields.optional<Json>("allowed", nullptr);
  if (option.allowed.is_object()) read_bounds(option, where);
  option.help = fields.optional<std::string>("help", "");
  fields.reject_unknown();
  return option;
}

constexpr std::chrono::seconds kDescribeTimeout{10};
constexpr std::size_t kMaxDescription = 1 << 20;

}  // namespace

std::string BenchmarkSpec::example_line() const {
  return name + (find("clients") != nullptr ? " --fabric sim:cib " : " ") + example;
}

const OptionSpec* BenchmarkSpec::find(std::string_view option) const {
  const auto found = std::ranges::find(options, option, &OptionSpec::name);
  return found == options.end() ? nullptr : &*found;
}

const OptionSpec& BenchmarkSpec::require(std::string_view option, const std::string& where) const {
  if (const OptionSpec* found = find(option)) return *found;
  std::vector<std::string> names;
  for (const OptionSpec& each : options) names.push_back(each.name);
  const std::string meant = did_you_mean(option, names);
  fail("{}: {} has no option \"{}\"{}", where, name, option,
       meant.empty() ? fmt::format("; its options are {}", fmt::join(names, ", ")) : meant);
}

BenchmarkSpec parse_benchmark_spec(std::string_view text, const std::string& where) {
  const Json json = parse_json_text(text, where);
  JsonFields fields(json, where);
  BenchmarkSpec spec;
  spec.name = fields.require<std::string>("benchmark");
  spec.summary = fields.optional<std::string>("summary", "");
  spec.example = fields.optional<std::string>("example", "");
  spec.serves = fields.optional<bool>("serves", false);
  const auto options = fields.require<std::vector<Json>>("options");
  for (std::size_t i = 0; i < options.size(); ++i) {
    spec.options.push_back(parse_option(options[i], fmt::format("{}: options[{}]", where, i)));
  }
  fields.reject_unknown();
  return spec;
}

std::string option_name(std::string_view text) {
  std::string name(text);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string to_string(OptionType type) {
  return std::ranges::find(kTypeNames, type, &std::pair<OptionType, const char*>::first)->second;
}

Json checked_value(const OptionSpec& option, const Json& value, const std::string& where) {
  const std::string what = fmt::format("{}: \"{}\"", where, option.name);
  if (!has_type(option.type, value))
    fail("{}: expected {}, got {}", what, expected_text(option.type), dump_json(value));
  if (value.is_string() && (option.allowed.is_array() || option.type == OptionType::bytes)) {
    return value_of_text(option, value.get<std::string>(), what);
  }
  if (option.allowed.is_array() && std::ranges::find(option.allowed, value) == option.allowed.end()) {
    fail("{}: allowed are {}, got {}", what, dump_json(option.allowed), dump_json(value));
  }
  if (option.type == OptionType::integer || option.type == OptionType::bytes) {
    const Json named{{option.name, value}};
    JsonFields(named, where).require<std::int64_t>(option.name, option.min, option.max);
  }
  if (option.type == OptionType::duration && !option.zero && duration_of(value) == Picos(0)) {
    fail("{}: expected more than 0, got {}", what, dump_json(value));
  }
  return value;
}

Json option_value_from_text(const OptionSpec& option, const std::string& text, const std::string& where) {
  Json value = text;
  if (option.type != OptionType::string && option.type != OptionType::duration) {
    const Json parsed = Json::parse(text, nullptr, false);
    if (!parsed.is_discarded()) value = parsed;
  }
  return checked_value(option, value, where);
}

std::string option_argument(const std::string& name, const Json& value) {
  return fmt::format("--{}={}", name, text_of(value));
}

std::vector<std::string> benchmark_names() {
  std::istringstream names(VERBSCOPE_BENCHMARKS);
  return {std::istream_iterator<std::string>(names), {}};
}

std::filesystem::path benchmark_binary(const std::filesystem::path& folder, const std::string& benchmark) {
  const std::vector<std::string> names = benchmark_names();
  if (std::ranges::find(names, benchmark) == names.end()) {
    const std::string meant = did_you_mean(benchmark, names);
    fail("unknown benchmark \"{}\"{}", benchmark,
         meant.empty() ? fmt::format("; known are {}", fmt::join(names, ", ")) : meant);
  }
  return folder / benchmark;
}

BenchmarkSpec describe_benchmark(const std::filesystem::path& binary) {
  if (!std::filesystem::exists(binary)) {
    fail("{} is not built: {} does not exist; `make -f Makefile.cluster programs` builds every benchmark",
         binary.filename().string(), binary.string());
  }
  std::string output;
  Child child({binary.string(), "--describe"}, [&output](std::string_view chunk) {
    output.append(chunk.substr(0, kMaxDescription - std::min(kMaxDescription, output.size())));
  });
  const std::string what = binary.filename().string() + " --describe";
  if (wait_for_end(child, std::chrono::steady_clock::now() + kDescribeTimeout, nullptr) != WaitEnd::satisfied) {
    fail("{}: no output after {} s", what, kDescribeTimeout.count());
  }
  if (!child.succeeded()) fail("{}: {}", what, child.end_and_last_line());
  return parse_benchmark_spec(output, what);
}

}  // namespace verbscope
