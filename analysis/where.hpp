// `--where key=value`: which records a command shows.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// Records that have one of `values` under `key`: an option, or benchmark, fabric ("cib" is "sim:cib" as well), label
// or, with several files, file (Record::file).
struct Condition {
  std::string key;
  std::vector<std::string> values;
};

// "size=16,32"; `-` and `_` mean the same in a key. Throws a UsageError for what is no condition.
// `option` named it on the command line.
Condition parse_condition(const std::string& text, const std::string& option = "--where");
// The text of a record under a key of a condition; "-" when it has none. Whether that is this value: 64 is 64.0 too,
// and truth values may be told as JSON has them.
std::string text_of_key(const Record& record, const std::string& key);
bool has_value(const Record& record, const std::string& key, const std::string& value);

// The label that the sweep gives to the points of a curve; empty when it gives none.
std::string label_of(const Record& record);

// Leaves only records that meet every condition. Throws a UsageError for a key that no record has, with those that
// there are, and for a condition that leaves none, with the values that there are.
void keep_where(std::vector<const Record*>& records, const std::vector<std::string>& conditions);

}  // namespace verbscope
