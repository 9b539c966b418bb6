// Records in shapes that other tools read.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// perftest's two forms: the documents of --out_json, a key a line, and the text of its tables.
enum class PerftestForm { json, table };

// Every record that did not fail, with perftest's names and units: a document or row for each size whose latency was
// measured, otherwise one. `Number_of_qps` counts those of all threads; bandwidth is in Gb/s where --report_gbits was
// given, else in perftest's MB (2^20 bytes). A simulated record has its fabric as its device, and says that it is
// simulated. Records of which perftest has no such test are left out, which one line on stderr says; throws Error when
// no others are there.
std::string perftest_lines(const std::vector<const Record*>& records, PerftestForm form);

// One flat object a line: id, benchmark, fabric, simulated, sweep, label, status, reason, then each number, text and
// truth value of config and result under "config.KEY" and "result.KEY", nested ones with further dots; arrays are left
// out.
std::string flat_lines(const std::vector<const Record*>& records);

// The flat records as CSV: a column for each key that any record has.
std::string flat_csv(const std::vector<const Record*>& records);

}  // namespace verbscope
