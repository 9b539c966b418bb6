// `--where key=value`: selects the records that a command shows.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// Matches records that have one of `values` under `key`: an option, or benchmark, fabric ("cib" also means "sim:cib"),
// label or, with several files, file (Record::file).
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

// Parses "size=16,32". In a key `-` equals `_`. Throws UsageError if the text is no condition; `option` is the
// command-line option that contained it.
Condition parse_condition(const std::string& text, const std::string& option = "--where");
// A record's text under the key of a condition; "-" if it has none. has_value: true if the text equals `value`; 64
// equals 64.0, and booleans may also be written as in JSON.
std::string text_of_key(const Record& record, const std::string& key);
bool has_value(const Record& record, const std::string& key, const std::string& value);

// The label that the sweep gives to the points of a curve; empty if none.
std::string label_of(const Record& record);

// Keeps only records that meet every condition. Throws UsageError for a key that no record has (lists the keys), and
// for a condition that no record meets (lists the values).
void keep_where(std::vector<const Record*>& records, const std::vector<std::string>& conditions);

}  // namespace verbscope
