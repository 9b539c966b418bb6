// The output of perftest: names of its tests, facts above its tables, and columns. Exports records in this form;
// harness/import reads it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// A perftest test and our benchmark that measures the same.
struct PerftestTest {
  std::string benchmark;  // "write_rate", "verb_latency" ...
  std::string verb = {};  // for verb_latency and atomic_rate; empty if the benchmark has only one verb
  bool latency = false;
  bool bidirectional = false;
  bool immediate = false;  // WRITE with immediate
};

// Parses "RDMA_Write Bidirectional BW Test", or "RDMA_Write_Bidirectional_BW_Test" as in its JSON. Returns nothing if
// the text is no title of a test.
std::optional<PerftestTest> perftest_test(std::string_view title);
// The test title for a record, as in the text form; empty if perftest has no such test.
std::string perftest_title(const Record& record);

// One fact above a table.
struct PerftestFact {
  enum class Kind { number, text };
  const char* key;     // in JSON
  const char* label;   // in text
  const char* option;  // in `config`
  Kind kind;
};
// The fact with this key or label, ignoring blanks, case and punctuation. Null if records do not store it.
const PerftestFact* perftest_fact(std::string_view name);
// True if perftest prints this fact above its tables, whether records store it or not.
bool is_perftest_fact(std::string_view name);

// A column of perftest's tables. A name that ends in '[' is followed by its unit.
struct PerftestColumn {
  const char* key;     // in JSON
  const char* header;  // in text
};
std::span<const PerftestColumn> perftest_columns();

// Bytes per second in perftest's bandwidth units, which it prints as MB/sec and Gb/sec.
inline constexpr double kPerftestMb = 1024.0 * 1024;
inline constexpr double kPerftestGb = 1e9 / 8;

// perftest's formats: the documents of --out_json with one key per line, and its text tables.
enum class PerftestForm { json, table };

// Exports every record that did not fail, with perftest's names and units: one document or row per size with a measured
// latency, else one per record. `Number_of_qps` counts the QPs of all threads. Bandwidth is in Gb/s with
// --report_gbits, else in perftest's MB (2^20 bytes). A simulated record has its fabric as device and is marked as
// simulated. Skips records without a matching perftest test, with one line on stderr. Throws Error if no others exist.
std::string perftest_lines(const std::vector<const Record*>& records, PerftestForm form);

}  // namespace verbscope
