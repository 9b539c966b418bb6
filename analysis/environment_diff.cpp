#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "analysis/diff.hpp"
#include "analysis/points.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kMaxLines = 30;
constexpr std::size_t kMaxValues = 4;  // shown per side

// Ends of fact names, those that explain most first.
constexpr std::array<std::string_view, 9> kImportantFacts = {"firmware", "driver",       "driver_version",
                                                             "kernel",   "git_revision", "cluster_profile",
                                                             "fabric",   "version",      "build_flags"};
// Names of facts that belong to a single point or moment.
constexpr std::array<std::string_view, 8> kTransientFacts = {
    "time_utc", "command_line", "options_set", "harness", "failed_attempts", "free", "buffers", "why"};

// Fact -> its distinct values.
using Facts = std::map<std::string, std::vector<std::string>>;

// An array element is named by one of these keys, else by its index.
std::string element_name(const Json& element, std::size_t index) {
  for (const char* key : {"name", "node", "port", "index", "size_kib"}) {
    const auto found = element.is_object() ? element.find(key) : element.end();
    if (element.is_object() && found != element.end() && found->is_primitive()) return plain_text(*found);
  }
  return std::to_string(index);
}

void collect(const Json& value, const std::string& name, Facts& facts) {
  const auto below = [&name](const std::string& key) { return name.empty() ? key : name + "." + key; };
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      if (std::ranges::find(kTransientFacts, key) == kTransientFacts.end()) collect(child, below(key), facts);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) collect(value[i], below(element_name(value[i], i)), facts);
  } else if (!value.is_null()) {
    std::vector<std::string>& values = facts[name];
    const std::string text = dump_json(value);
    if (std::ranges::find(values, text) == values.end()) values.push_back(text);
  }
}

Facts facts_of(const std::vector<Record>& records) {
  Facts facts;
  for (const Record& record : records) collect(record.environment, "", facts);
  return facts;
}

bool same_values(std::vector<std::string> a, std::vector<std::string> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

std::size_t rank_of(const std::string& fact) {
  const std::string_view last = std::string_view(fact).substr(fact.rfind('.') + 1);
  return static_cast<std::size_t>(std::ranges::find(kImportantFacts, last) - kImportantFacts.begin());
}

std::string values_text(const std::vector<std::string>& values) {
  if (values.empty()) return "not recorded";
  const std::size_t shown = std::min(values.size(), kMaxValues);
  const std::string more = values.size() > shown ? fmt::format(" and {} more", values.size() - shown) : "";
  return fmt::format("{}{}", fmt::join(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     more);
}

}  // namespace

std::vector<EnvironmentDifference> environment_differences(const std::vector<Record>& base,
                                                           const std::vector<Record>& other) {
  Facts before = facts_of(base), after = facts_of(other);
  for (const auto& [fact, values] : after) before[fact];  // adds the facts that only the other side has
  std::vector<EnvironmentDifference> out;
  for (const auto& [fact, values] : before) {
    if (!same_values(values, after[fact])) out.push_back({fact, values, after[fact]});
  }
  std::ranges::stable_sort(out, {}, [](const EnvironmentDifference& one) { return rank_of(one.fact); });
  return out;
}

std::string environment_text(const std::vector<EnvironmentDifference>& differences) {
  if (differences.empty()) return "environments: no difference in the records\n";
  std::string out = "environments differ (base -> new):\n";
  for (std::size_t i = 0; i < std::min(differences.size(), kMaxLines); ++i) {
    const EnvironmentDifference& one = differences[i];
    const std::string fact = dump_json(one.fact);
    out +=
        fmt::format("  {}: {} -> {}\n", fact.substr(1, fact.size() - 2), values_text(one.base), values_text(one.other));
  }
  if (differences.size() > kMaxLines) {
    out += fmt::format("  and {} more: --format json has all\n", differences.size() - kMaxLines);
  }
  return out;
}

Json environment_json(const std::vector<EnvironmentDifference>& differences) {
  Json out = Json::array();
  for (const EnvironmentDifference& one : differences) {
    out.push_back(Json{{"fact", one.fact}, {"base", one.base}, {"new", one.other}});
  }
  return out;
}

}  // namespace verbscope
