// Exports records in formats of other tools.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// perftest's formats: the documents of --out_json with one key per line, and its text tables.
enum class PerftestForm { json, table };

// Exports every record that did not fail, with perftest's names and units: one document or row per size with a measured
// latency, else one per record. `Number_of_qps` counts the QPs of all threads. Bandwidth is in Gb/s with
// --report_gbits, else in perftest's MB (2^20 bytes). A simulated record has its fabric as device and is marked as
// simulated. Skips records without a matching perftest test, with one line on stderr. Throws Error if no others exist.
std::string perftest_lines(const std::vector<const Record*>& records, PerftestForm form);

// One flat object per line: id, benchmark, fabric, simulated, sweep, label, status, reason, then each number, text and
// boolean of config and result as "config.KEY" and "result.KEY". Nested keys are joined by dots. Omits arrays.
std::string flat_lines(const std::vector<const Record*>& records);

// The flat records as CSV, with one column per key that any record has.
std::string flat_csv(const std::vector<const Record*>& records);

}  // namespace verbscope
