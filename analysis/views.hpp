// Records in shapes that other tools read.
#pragma once

#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// One record in the shape of perftest's --out_json: {"test_info", "results"} with perftest's names and units (MsgRate
// in millions a second, BW_average in MiB/s, times in microseconds). A document for each size whose latency was
// measured, otherwise one; none when perftest has no such test. What a record does not have is left out. `results` also
// has "simulated", which perftest has not: a parser that does not know it passes it over.
std::vector<Json> perftest_views(const Record& record);

// Every record that is ok, a document a line. Records of which perftest has no such test are left out, which one line
// on stderr says; throws Error when no others are there.
std::string perftest_lines(const std::vector<const Record*>& records);

// One flat object a line: id, benchmark, fabric, simulated, status, reason, then each number, text and truth value of
// config and result under "config.KEY" and "result.KEY", nested ones with further dots; arrays are left out.
std::string flat_lines(const std::vector<const Record*>& records);

// The flat records as CSV: a column for each key that any record has.
std::string flat_csv(const std::vector<const Record*>& records);

}  // namespace verbscope
