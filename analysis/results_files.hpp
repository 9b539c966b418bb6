// Results files: loads their records for all analyses, and exports records as flat objects.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// Record::file for each results file: empty for a single file, else distinct_ends. Throws UsageError if a file is given
// twice.
std::vector<std::string> file_names(const std::vector<std::string>& paths);

// Largest amount that an analysis loads, in bytes of the files. In memory a record takes about five times its line.
inline constexpr std::size_t kMaxResultBytes = 1'000'000'000;

// Loads the last record of each point of each file, or every record if `all`, in order. With several files, each record
// stores its file's name (Record::file), and the same point in two files is two points. Warns on stderr about lines
// that are no records and about unreadable predictions (set to null): the first ten per file, and their number. Throws
// Error if a file cannot be read, contains no record or a record of another version, or if the chosen records exceed
// `max_bytes`. Throws UsageError if a file is given twice.
std::vector<Record> load_results(const std::vector<std::string>& paths, bool all,
                                 std::size_t max_bytes = kMaxResultBytes);

// The last record of each point of each file. Points of a sweep are in the order of the sweep file with their
// repetitions together, whatever the order of the runs; other points are in the order of the records. chosen_records
// returns every record unchanged if `all`.
std::vector<const Record*> last_of_each_point(const std::vector<Record>& records);
std::vector<const Record*> chosen_records(const std::vector<Record>& records, bool all);

// One flat object per line: id, benchmark, fabric, simulated, sweep, label, status, reason, then each number, text and
// boolean of config and result as "config.KEY" and "result.KEY". Nested keys are joined by dots. Omits arrays.
std::string flat_lines(const std::vector<const Record*>& records);

// The flat records as CSV, with one column per key that any record has.
std::string flat_csv(const std::vector<const Record*>& records);

}  // namespace verbscope
