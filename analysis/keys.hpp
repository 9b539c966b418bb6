// Keys of options and results as users type them: the numbers that records store under them, and the conditions of
// `--where`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// The short name of a key: "gbps" for "bandwidth_gbit_per_s", "get_p99" for "get_lat_p99_ns"; empty if it has none.
std::string short_key(const std::string& key);
// True if the result under this key is a latency, where less is better.
bool is_latency(const std::string& key);

// The number under `key`: from record.result, from its latency if one size was measured, or from the events per
// operation of the machine under test ("dma_read_lines_per_op").
std::optional<double> result_number(const Record& record, const std::string& key);
// All keys for which result_number returns a number, in the order of the record.
std::vector<std::string> result_keys(const Record& record);

// Resolves `name`, a key ('-' equals '_') or a short name, to the key. At least one record has a number under it; else
// throws a UsageError that begins with `option` and lists the keys.
std::string find_result_key(const std::string& option, const std::string& name,
                            const std::vector<const Record*>& records);
// Like find_result_key, for benchmark options. A time such as "duration" has the key "duration_s".
std::string find_option_key(const std::string& option, const std::string& name,
                            const std::vector<const Record*>& records);

// The latency of a record that measured one size; else null.
const Json* only_latency(const Record& record);

// The main result of a record: median latency if the benchmark keeps only one operation outstanding, else the rate.
std::string main_result_key(const Record& record);
// The main result of several records: latency only if it is the main result of each.
std::string main_result_key(const std::vector<const Record*>& records);

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
