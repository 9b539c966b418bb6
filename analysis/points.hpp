// The records of one or several results files, which every analysis reads, and the names of their points.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// The most that an analysis takes into memory, in bytes of the files; a record needs some five times its line.
inline constexpr std::size_t kMostResultBytes = 1'000'000'000;

// The last record of each point of each file, or every record when `all`, in order. With several files each record has
// the name of its own (Record::file): the same point of two files is two. Lines that are not records are told
// on stderr, the first ten of a file and their number, and likewise predictions that cannot be read, which are null
// then. Throws Error when a file cannot be read, has a record of
// another version, or has no record at all, and when what was chosen is more than `most_bytes`; a
// UsageError when a file is given twice.
std::vector<Record> load_results(const std::vector<std::string>& paths, bool all,
                                 std::size_t most_bytes = kMostResultBytes);

// The key of the point that a record is a run of: benchmark, options, repetition, seed and fabric where it comes from a
// sweep, else benchmark, fabric and all of its configuration, sorted. Records with the same key are the same point run
// again.
std::string record_key(const Record& record);
// record_key without repetition, seed and fabric: repetitions share it, wherever they run.
std::string repeated_key(const Record& record);

// A short name of the point: benchmark, options and fabric (a profile's file counts as its name), so that repetitions
// share it. 8 hexadecimal digits (FNV-1a), the same in every command and file and on every machine.
std::string point_id(const Record& record);

// The options that the record's sweep set, else all of its configuration. An object.
const Json& set_options(const Record& record);
// The text under `key`; empty when there is none.
std::string text_at(const Json& object, const std::string& key);
// What `verbscope run` says of the record's place in its sweep under `key` of environment.harness; empty when it says
// nothing.
std::string harness_text(const Record& record, const std::string& key);

// Whether an option says what runs, not where or under which seed.
bool says_what_runs(const std::string& option);
// The options that the command line set to another value than their default, without where it runs; none where the
// record does not say which.
std::optional<std::vector<std::string>> changed_options(const Record& record);
// The options that say what a record is of, without where it runs: those its sweep set, or, of a program run by hand,
// those with another value than their default; all of the configuration where the record does not say which.
std::vector<std::string> option_keys(const Record& record);
// The value of an option for a person; times are kept with their unit in the key. "-" when it has none.
std::string option_text(const Record& record, const std::string& key);
// "send_rate connection=UD size=60", by option_keys.
std::string point_title(const Record& record);
// The record's repetition, counted from 0; 0 outside a sweep.
int repetition_of(const Record& record);

// The last record of each point of each file. The points of a sweep are in the order of its file, with their
// repetitions together, whatever the order was in which they ran; others in the order of the records. The other one:
// every record, as they are, when `all`.
std::vector<const Record*> last_of_each_point(const std::vector<Record>& records);
std::vector<const Record*> chosen_records(const std::vector<Record>& records, bool all);

// The finite number under `key`, if there is one.
std::optional<double> number_at(const Json& object, const std::string& key);

// The report of one node, or null. Of several sources the simulator's, else the first.
const CounterReport* counters_of(const Record& record, const std::string& node);

// The events of the machine under test for each operation, each by the first source that sees it; not a number where
// none does. None at all when nothing was counted.
std::optional<PciePerOp> events_per_op(const Record& record);

// The count of the adapter of the machine under test under `key` of `extra`, for each operation; none where it
// does not say.
std::optional<double> extra_per_op(const Record& record, const std::string& key);

// The sum of what the adapters of all nodes counted under `key` of `extra`.
double counted_in_all(const Record& record, const std::string& key);

}  // namespace verbscope
