#include "analysis/keys.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>

#include "analysis/loads.hpp"
#include "analysis/points.hpp"
#include "common/text.hpp"

namespace verbscope {
namespace {

struct ShortKey {
  std::string_view name, key;
};

constexpr std::array kShortKeys{ShortKey{"mops", "rate_mops"}, ShortKey{"gbps", "bandwidth_gbit_per_s"},
                                ShortKey{"mb_per_s", "bandwidth_mb_per_s"}, ShortKey{"payload", "size"}};

// Short names of latencies follow a rule: "p99" is lat_p99_ns, "get_p99" is get_lat_p99_ns.
constexpr std::string_view kLatency = "lat_", kNanoseconds = "_ns";
constexpr std::array<std::string_view, 8> kLatencies = {"min", "mean", "p50", "p90", "p99", "p99_9", "p99_99", "max"};

constexpr std::string_view kPerOp = "_per_op", kSeconds = "_s";
constexpr const char* kRate = "rate_mops";
constexpr std::string_view kMedian = "lat_p50_ns";

std::vector<std::string> numbers_in(const Json& object) {
  std::vector<std::string> keys;
  if (!object.is_object()) return keys;
  for (const auto& [key, value] : object.items()) {
    if (number_at(object, key)) keys.push_back(key);
  }
  return keys;
}

// "rate_mops (mops), cq_armings".
std::string listed(const std::vector<std::string>& keys) {
  std::vector<std::string> words;
  for (const std::string& key : keys) {
    const std::string name = short_key(key);
    words.push_back(name.empty() ? key : fmt::format("{} ({})", key, name));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

void add_new(std::vector<std::string>& to, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (std::ranges::find(to, key) == to.end()) to.push_back(key);
  }
}

// The numeric options that differ between the records; all if none differs.
std::vector<std::string> options_to_choose(const std::vector<const Record*>& records,
                                           const std::vector<std::string>& all) {
  std::vector<std::string> differing = all;
  std::erase_if(differing, [&records](const std::string& key) {
    return std::ranges::all_of(
        records, [&](const Record* each) { return option_text(*each, key) == option_text(*records.front(), key); });
  });
  return differing.empty() ? all : differing;
}

// The entry of `keys` that `name` stands for; null if there is none.
const std::string* find_key(const std::vector<std::string>& keys, std::string name, std::string_view unit) {
  std::ranges::replace(name, '-', '_');
  const auto found = std::ranges::find_if(keys, [&](const std::string& key) {
    return key == name || short_key(key) == name || key == name + std::string(unit);
  });
  return found == keys.end() ? nullptr : &*found;
}

[[noreturn]] void fail_key(const std::string& option, const std::string& name, const std::vector<std::string>& known) {
  std::vector<std::string> names = known;
  for (const std::string& key : known) names.push_back(short_key(key));
  std::erase(names, "");
  const std::string near = did_you_mean(name, names);
  fail_usage("{} {}: no record has a number under this key{} Known keys: {}", option, name, near.empty() ? "." : near,
             listed(known));
}

constexpr const char* kNone = "-";

std::set<std::string> keys_of(const std::vector<const Record*>& records) {
  std::set<std::string> keys{"benchmark", "fabric"};
  for (const Record* record : records) {
    for (const std::string& key : option_keys(*record)) keys.insert(key);
    if (!label_of(*record).empty()) keys.insert("label");
    if (!record->file.empty()) keys.insert("file");
  }
  return keys;
}

void filter(std::vector<const Record*>& records, const Condition& condition, const std::string& text) {
  std::set<std::string> known;
  for (const Record* record : records) known.insert(text_of_key(*record, condition.key));
  known.erase(kNone);
  if (known.empty()) {
    fail_usage("--where {}: no record has the key \"{}\"; known keys: {}", text, condition.key,
               fmt::join(keys_of(records), ", "));
  }
  std::erase_if(records, [&condition](const Record* record) {
    return std::ranges::none_of(condition.values,
                                [&](const std::string& value) { return has_value(*record, condition.key, value); });
  });
  if (records.empty())
    fail_usage("--where {}: no record has this value; known values: {}", text, fmt::join(known, ", "));
}

}  // namespace

const Json* only_latency(const Record& record) {
  const auto sizes = record.result.find("latency");
  const bool has_one = sizes != record.result.end() && sizes->is_array() && sizes->size() == 1;
  return has_one && sizes->front().is_object() ? &sizes->front() : nullptr;
}

std::string short_key(const std::string& key) {
  const auto* const found = std::ranges::find(kShortKeys, key, &ShortKey::key);
  if (found != kShortKeys.end()) return std::string(found->name);
  const std::size_t at = key.find(kLatency);
  if (at == key.npos || !key.ends_with(kNanoseconds) || (at > 0 && key[at - 1] != '_')) return "";
  const std::size_t begin = at + kLatency.size(), end = key.size() - kNanoseconds.size();
  const std::string rest = begin < end ? key.substr(begin, end - begin) : "";
  return std::ranges::find(kLatencies, rest) == kLatencies.end() ? "" : key.substr(0, at) + rest;
}

bool is_latency(const std::string& key) {
  return key.find(kLatency) != std::string::npos;
}

std::optional<double> result_number(const Record& record, const std::string& key) {
  if (const auto own = number_at(record.result, key)) return own;
  if (const Json* latency = only_latency(record)) {
    if (const auto own = number_at(*latency, key)) return own;
  }
  if (!key.ends_with(kPerOp)) return std::nullopt;
  std::optional<double> out;
  if (const auto events = events_per_op(record)) {
    PciePerOp::each(*events, [&](const char* name, double value) {
      if (name + std::string(kPerOp) == key && std::isfinite(value)) out = value;
    });
  }
  return out;
}

std::vector<std::string> result_keys(const Record& record) {
  std::vector<std::string> keys = numbers_in(record.result);
  if (const Json* latency = only_latency(record)) add_new(keys, numbers_in(*latency));
  if (const auto events = events_per_op(record)) {
    PciePerOp::each(*events, [&keys](const char* name, double value) {
      if (std::isfinite(value)) add_new(keys, {name + std::string(kPerOp)});
    });
  }
  return keys;
}

std::string find_result_key(const std::string& option, const std::string& name,
                            const std::vector<const Record*>& records) {
  std::vector<std::string> keys;
  for (const Record* record : records) add_new(keys, result_keys(*record));
  const std::string* const found = find_key(keys, name, kNanoseconds);
  if (found == nullptr) fail_key(option, name, keys);
  return *found;
}

std::string find_option_key(const std::string& option, const std::string& name,
                            const std::vector<const Record*>& records) {
  std::vector<std::string> keys;
  for (const Record* record : records) add_new(keys, numbers_in(record->config));
  const std::string* const found = find_key(keys, name, kSeconds);
  if (found == nullptr) fail_key(option, name, options_to_choose(records, keys));
  return *found;
}

std::string main_result_key(const Record& record) {
  if (!keeps_one_outstanding(record)) return kRate;
  const std::vector<std::string> keys = result_keys(record);
  const auto median = std::ranges::find_if(keys, [](const std::string& key) { return key.ends_with(kMedian); });
  return median == keys.end() ? kRate : *median;
}

std::string main_result_key(const std::vector<const Record*>& records) {
  std::set<std::string> keys;
  for (const Record* record : records) {
    if (record->status != RecordStatus::failed) keys.insert(main_result_key(*record));
  }
  return keys.size() == 1 ? *keys.begin() : kRate;
}

Condition parse_condition(const std::string& text, const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    fail_usage("{}: expected key=value or key=value,value, got \"{}\"", option, text);
  }
  Condition condition{.key = text.substr(0, equals), .values = split(text.substr(equals + 1), ',')};
  std::ranges::replace(condition.key, '-', '_');
  return condition;
}

std::string text_of_key(const Record& record, const std::string& key) {
  if (key == "benchmark") return record.benchmark;
  if (key == "fabric") return text_at(record.environment, "fabric");
  if (key == "label") return label_of(record).empty() ? kNone : label_of(record);
  if (key == "file") return record.file.empty() ? kNone : record.file;
  return option_text(record, key);
}

bool has_value(const Record& record, const std::string& key, const std::string& value) {
  const std::string text = text_of_key(record, key);
  if (text == value) return true;
  if (key == "fabric") return short_fabric(text) == value;
  if (text == "yes" || text == "no") return value == (text == "yes" ? "true" : "false");
  const auto own = number_from<double>(text), asked = number_from<double>(value);
  return own && asked && *own == *asked;
}

std::string label_of(const Record& record) {
  return harness_text(record, "label");
}

void keep_where(std::vector<const Record*>& records, const std::vector<std::string>& conditions) {
  for (const std::string& text : conditions) filter(records, parse_condition(text), text);
}

}  // namespace verbscope
