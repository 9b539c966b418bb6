// What perftest prints: the names of its tests, the facts above its tables, and the columns. Records are written in
// this form (views.hpp), and its text is read as records (harness/import).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/record.hpp"

namespace verbscope {

// A test of perftest, as the benchmark of ours that measures the same.
struct PerftestTest {
  std::string benchmark;  // "write_rate", "verb_latency" ...
  std::string verb = {};  // of verb_latency and atomic_rate; empty: the benchmark has one
  bool latency = false;
  bool bidirectional = false;
  bool immediate = false;  // WRITE with immediate
};

// From "RDMA_Write Bidirectional BW Test", or the "RDMA_Write_Bidirectional_BW_Test" of its JSON; none when it is no
// title of a test.
std::optional<PerftestTest> perftest_test(std::string_view title);
// The title of the test that a record is a run of, as the text form has it; empty when perftest has no such test.
std::string perftest_title(const Record& record);

// One fact above a table.
struct PerftestFact {
  enum class Kind { number, text };
  const char* key;     // in JSON
  const char* label;   // in text
  const char* option;  // in `config`
  Kind kind;
};
std::span<const PerftestFact> perftest_facts();
// The fact of this key or label; blanks, case and punctuation do not count. Null: none that is kept.
const PerftestFact* perftest_fact(std::string_view name);
// Whether perftest prints a fact of this name above its tables, kept or not.
bool is_perftest_fact(std::string_view name);

// A column of its tables. A name ends in '[' where its unit follows.
struct PerftestColumn {
  const char* key;     // in JSON
  const char* header;  // in text
};
std::span<const PerftestColumn> perftest_columns();

// Bytes a second in its two units of bandwidth, which it calls MB/sec and Gb/sec.
inline constexpr double kPerftestMb = 1024.0 * 1024;
inline constexpr double kPerftestGb = 1e9 / 8;

}  // namespace verbscope
