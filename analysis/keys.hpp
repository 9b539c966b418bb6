// Keys of options and results under the names that users type, and the numbers that records store under them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// The short name of a key: "gbps" for "bandwidth_gbit_per_s", "get_p99" for "get_lat_p99_ns"; empty if it has none.
std::string short_key(const std::string& key);

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

// The main result of a record: median latency if the benchmark keeps only one operation outstanding, else the rate.
std::string main_result_key(const Record& record);
// The main result of several records: latency only if it is the main result of each.
std::string main_result_key(const std::vector<const Record*>& records);

}  // namespace verbscope
