// Points of records: their keys, names, options and fabrics, and the numbers that were measured and counted at them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// The key of a record's point. In a sweep: benchmark, options, repetition, seed and fabric; else benchmark, fabric and
// the whole configuration, sorted. Records with equal keys are runs of the same point.
std::string record_key(const Record& record);
// record_key without repetition, seed and fabric: equal for all repetitions, wherever they run.
std::string repeated_key(const Record& record);

// Short name of the point: a hash (FNV-1a, 8 hexadecimal digits) of benchmark, options and fabric (the file name of a
// profile counts as its name). Repetitions share it; it is the same in every command and file and on every machine.
std::string point_id(const Record& record);

// Options set by the record's sweep, or else the whole configuration. An object.
const Json& sweep_options(const Record& record);
// A string without quotes; another value as dump_json.
std::string plain_text(const Json& value);
// The text under `key`; empty if there is none.
std::string text_at(const Json& object, const std::string& key);
// Text under `key` of environment.harness, where `verbscope run` stores the record's place in its sweep; empty if
// absent.
std::string harness_text(const Record& record, const std::string& key);

// True unless the option only selects where the program runs, or its seed.
bool is_point_option(const std::string& option);
// Options that the command line changed from their defaults, except those for where it runs. Nothing if the record does
// not store them.
std::optional<std::vector<std::string>> changed_options(const Record& record);
// The options that describe a record, except those for where it runs: those set by its sweep, or for a manual run those
// changed from their defaults. The whole configuration if the record does not store the changes.
std::vector<std::string> option_keys(const Record& record);
// The options of all these records, each once, in order of appearance.
std::vector<std::string> option_keys(const std::vector<const Record*>& records);
// The value of an option as text; "-" if it has none. A time has its unit in the key.
std::string option_text(const Record& record, const std::string& key);
// "send_rate connection=UD size=60", from option_keys.
std::string point_title(const Record& record);
// The record's repetition, starting at 0; 0 outside a sweep.
int repetition_of(const Record& record);

// The number under `key`, if there is a finite one.
std::optional<double> number_at(const Json& object, const std::string& key);

// The value at a dotted path: "ops.get.rate_mops". Null if there is none.
const Json* value_at(const Json& object, std::string_view path);

// The counter report of one node; null if there is none. With several sources: the simulator's, else the first.
const CounterReport* counters_of(const Record& record, const std::string& node);

// Events per operation on the machine under test, each from the first source that counts it; NaN for events that no
// source counts. Nothing if no event was counted.
std::optional<PciePerOp> events_per_op(const Record& record);

// Count per operation under `key` of `extra`, for the adapter of the machine under test; nothing if absent.
std::optional<double> extra_per_op(const Record& record, const std::string& key);

// Sum over all nodes of the adapters' counts under `key` of `extra`.
double counted_in_all(const Record& record, const std::string& key);

// "cib" for sim:cib and for sim:/a/path/cib.json; other fabrics unchanged.
std::string short_fabric(const std::string& fabric);
// "sim:cib" for both.
std::string fabric_name(const Record& record);

// The shortest distinct path endings, without extensions: "base" and "new" for a/base.jsonl and a/new.jsonl; "old/run"
// and "new/run" for old/run.jsonl and new/run.jsonl.
std::vector<std::string> distinct_ends(const std::vector<std::string>& paths);

// Distinct names for the fabrics of some records: short_fabric if that is enough; "a/cib" and "b/cib" for two profiles
// of the same name; "cib@6bcabe12" and "cib@77aa0312" (checksums) for a profile that changed between runs.
class FabricNames {
 public:
  explicit FabricNames(const std::vector<const Record*>& records);

  // Precondition: `record` is one of those passed to the constructor.
  const std::string& name_of(const Record& record) const;

 private:
  std::map<std::pair<std::string, std::string>, std::string> names_;  // by fabric and checksum of its profile
};

}  // namespace verbscope
