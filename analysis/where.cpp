#include "analysis/where.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "analysis/points.hpp"
#include "analysis/sources.hpp"

namespace verbscope {
namespace {

constexpr const char* kNone = "-";

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::set<std::string> keys_of(const std::vector<const Record*>& records) {
  std::set<std::string> keys{"benchmark", "fabric"};
  for (const Record* record : records) {
    for (const std::string& key : option_keys(*record)) keys.insert(key);
    if (!label_of(*record).empty()) keys.insert("label");
    if (!record->file.empty()) keys.insert("file");
  }
  return keys;
}

void keep(std::vector<const Record*>& records, const Condition& condition, const std::string& text) {
  std::set<std::string> known;
  for (const Record* record : records) known.insert(text_of_key(*record, condition.key));
  known.erase(kNone);
  if (known.empty()) {
    fail_usage("--where {}: no record has \"{}\": there are {}", text, condition.key,
               fmt::join(keys_of(records), ", "));
  }
  std::erase_if(records, [&condition](const Record* record) {
    return std::ranges::none_of(condition.values,
                                [&](const std::string& value) { return has_value(*record, condition.key, value); });
  });
  if (records.empty()) fail_usage("--where {}: leaves no record: there are {}", text, fmt::join(known, ", "));
}

}  // namespace

Condition parse_condition(const std::string& text, const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    fail_usage("{}: expected key=value or key=value,value, got \"{}\"", option, text);
  }
  Condition condition{.key = text.substr(0, equals), .values = {}};
  std::ranges::replace(condition.key, '-', '_');
  for (std::size_t begin = equals + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    condition.values.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
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
  const auto own = as_number(text), asked = as_number(value);
  return own && asked && *own == *asked;
}

std::string label_of(const Record& record) {
  return harness_text(record, "label");
}

void keep_where(std::vector<const Record*>& records, const std::vector<std::string>& conditions) {
  for (const std::string& text : conditions) keep(records, parse_condition(text), text);
}

}  // namespace verbscope
