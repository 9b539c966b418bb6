// Loads the records of results files for all analyses, and names their points.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// Largest amount that an analysis loads, in bytes of the files. In memory a record takes about five times its line.
inline constexpr std::size_t kMaxResultBytes = 1'000'000'000;

// Loads the last record of each point of each file, or every record if `all`, in order. With several files, each record
// stores its file's name (Record::file), and the same point in two files is two points. Warns on stderr about lines
// that are no records and about unreadable predictions (set to null): the first ten per file, and their number. Throws
// Error if a file cannot be read, contains no record or a record of another version, or if the chosen records exceed
// `most_bytes`. Throws UsageError if a file is given twice.
std::vector<Record> load_results(const std::vector<std::string>& paths, bool all,
                                 std::size_t most_bytes = kMaxResultBytes);

// The key of a record's point. In a sweep: benchmark, options, repetition, seed and fabric; else benchmark, fabric and
// the whole configuration, sorted. Records with equal keys are runs of the same point.
std::string record_key(const Record& record);
// record_key without repetition, seed and fabric: equal for all repetitions, wherever they run.
std::string repeated_key(const Record& record);

// Short name of the point: a hash (FNV-1a, 8 hexadecimal digits) of benchmark, options and fabric (the file name of a
// profile counts as its name). Repetitions share it; it is the same in every command and file and on every machine.
std::string point_id(const Record& record);

// Options set by the record's sweep, or else the whole configuration. An object.
const Json& set_options(const Record& record);
// The text under `key`; empty if there is none.
std::string text_at(const Json& object, const std::string& key);
// Text under `key` of environment.harness, where `verbscope run` stores the record's place in its sweep; empty if
// absent.
std::string harness_text(const Record& record, const std::string& key);

// True unless the option only selects where the program runs, or its seed.
bool says_what_runs(const std::string& option);
// Options that the command line changed from their defaults, except those for where it runs. Nothing if the record does
// not store them.
std::optional<std::vector<std::string>> changed_options(const Record& record);
// The options that describe a record, except those for where it runs: those set by its sweep, or for a manual run those
// changed from their defaults. The whole configuration if the record does not store the changes.
std::vector<std::string> option_keys(const Record& record);
// The value of an option as text; "-" if it has none. A time has its unit in the key.
std::string option_text(const Record& record, const std::string& key);
// "send_rate connection=UD size=60", from option_keys.
std::string point_title(const Record& record);
// The record's repetition, starting at 0; 0 outside a sweep.
int repetition_of(const Record& record);

// The last record of each point of each file. Points of a sweep are in the order of the sweep file with their
// repetitions together, whatever the order of the runs; other points are in the order of the records. chosen_records
// returns every record unchanged if `all`.
std::vector<const Record*> last_of_each_point(const std::vector<Record>& records);
std::vector<const Record*> chosen_records(const std::vector<Record>& records, bool all);

// The number under `key`, if there is a finite one.
std::optional<double> number_at(const Json& object, const std::string& key);

// The counter report of one node; null if there is none. With several sources: the simulator's, else the first.
const CounterReport* counters_of(const Record& record, const std::string& node);

// Events per operation on the machine under test, each from the first source that counts it; NaN for events that no
// source counts. Nothing if no event was counted.
std::optional<PciePerOp> events_per_op(const Record& record);

// Count per operation under `key` of `extra`, for the adapter of the machine under test; nothing if absent.
std::optional<double> extra_per_op(const Record& record, const std::string& key);

// Sum over all nodes of the adapters' counts under `key` of `extra`.
double counted_in_all(const Record& record, const std::string& key);

}  // namespace verbscope
