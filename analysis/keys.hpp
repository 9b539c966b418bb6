// Keys of options and results as users name them, and the numbers that records have under them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// The short name of a key: "gbps" for "bandwidth_gbit_per_s", "get_p99" for "get_lat_p99_ns"; empty without one.
std::string short_key(const std::string& key);

// The number of a result: under `key` of record.result, or of its latency where one size was measured; or an event at
// the machine under test per operation, "dma_read_lines_per_op".
std::optional<double> result_number(const Record& record, const std::string& key);
// Every key for which result_number yields a number, in the order of the record.
std::vector<std::string> result_keys(const Record& record);

// The key that `name` stands for: a key itself ('-' is '_') or a short name. Some record has a number under it. Throws
// a UsageError that begins with `option` and lists the keys when none has.
std::string find_result_key(const std::string& option, const std::string& name,
                            const std::vector<const Record*>& records);
// The same for an option of the benchmarks; a time "duration" is the key "duration_s".
std::string find_option_key(const std::string& option, const std::string& name,
                            const std::vector<const Record*>& records);

// The result that a benchmark exists for: the median of latency where it keeps one operation under way, else the rate.
std::string main_result_key(const Record& record);
// That of all records together: a latency only where it is that of each.
std::string main_result_key(const std::vector<const Record*>& records);

}  // namespace verbscope
