// The result record: what every benchmark writes for every point, on every fabric (docs/records.md,
// results/record.schema.json). This is its only writer and its only reader.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/fd.hpp"
#include "common/json.hpp"
#include "common/pcie_events.hpp"

namespace verbscope {

// The schema's name in every record. A reader refuses every other value.
inline constexpr const char* kRecordSchema = "verbscope.record/1";

// `imported`: read from the output of another tool, not measured by a benchmark of this project.
enum class RecordStatus { ok, failed, imported };
const char* to_string(RecordStatus status);

// The counts of one source on one node during the steady window.
struct CounterReport {
  std::string source;   // who counted: "sim", "pcm-pcie", ...
  std::string node;     // whose PCIe slot: "server", "client0", ...
  std::string blind;    // the things that this source cannot see; empty: none
  double window_s = 0;  // length of the window, seconds (simulated ones under sim:)
  PcieCounts events;    // differences over the window
  // Names of events that this source does not count at all: 0 in `events`, null in JSON.
  std::vector<std::string> unseen = {};
  Json extra = Json::object();  // further counters of this source; keys carry units

  bool sees(const std::string& event) const;
};

// The operations of a record's `result` in the report's own window, which need not be that of the result; 0: not known.
double operations_in_window(const Json& result, const CounterReport& report);

struct Record {
  std::string benchmark;
  RecordStatus status = RecordStatus::ok;
  std::string reason;            // one line; empty unless status is failed
  Json config = Json::object();  // every parameter with its default
  Json result = Json::object();  // keys carry units
  std::vector<CounterReport> counters;
  Json prediction;                    // object, or null when no model was asked
  Json environment = Json::object();  // made by make_environment; the only place for host facts and wall-clock time
  std::string file = {};  // which of several results files it was read from, "base"; empty with one, and in JSON
};

// Throws Error when the record breaks the rules above (failed without a reason, an environment without its fabric ...).
Json to_json(const Record& record);

// A record of a version that this program does not read.
class UnknownSchema : public Error {
 public:
  using Error::Error;
};

// Throws Error with `where: ...` when `json` is not a record, and UnknownSchema when its schema is not kRecordSchema.
Record record_from_json(const Json& json, const std::string& where);

// The identity of a point, for --resume: `point` with its keys sorted at every level, on one line. The harness stores
// {benchmark, params, repetition, seed, fabric} under config.point.
std::string point_key(const Json& point);

// A results file has one record a line (JSON Lines), appended as points finish, so that an interrupted sweep keeps all.

// Appends records to a file, which is this writer's alone: a second writer, also of another process, is refused. A file
// that was cut in the middle of a line is continued on a fresh line.
class ResultsWriter {
 public:
  // Opens or creates `path` at once, so that an unwritable file fails before the measurement. `option` named it on the
  // command line. Throws what check_output throws, and Error.
  explicit ResultsWriter(std::filesystem::path path, std::string option = "--out",
                         const std::vector<std::filesystem::path>& inputs = {});

  // Writes the record as one line and flushes it to the device. Throws Error when any of it fails; the file is then as
  // it was. Where the file was deleted or renamed since, a warning says so, and the record begins a new one.
  void append(const Record& record);

  const std::filesystem::path& path() const { return path_; }
  // Whether that happened: not all records are in the file.
  bool moved() const { return moved_; }

 private:
  void open();
  bool is_regular() const;
  off_t size() const;
  bool ends_within_line() const;
  void follow_name();

  std::filesystem::path path_;
  std::string option_;
  Fd file_;
  bool moved_ = false;
};

struct Results {
  std::vector<Record> records;
  std::vector<std::string> warnings;  // one line "file:LINE: what" for each line that is not a record
};

// Every whole record of the file, in order, with the length of its line in bytes; and a warning, as below, for each
// line that is none. Throws Error when the file cannot be read, UnknownSchema when a record is of another version.
void each_result(const std::filesystem::path& path, const std::function<void(Record record, std::size_t bytes)>& visit,
                 const std::function<void(const std::string& warning)>& warn);
// The records and warnings of each_result's file, all at once.
Results read_results(const std::filesystem::path& path);
// The same; the warnings are printed, as those of one file, instead of kept.
Results read_results_warning(const std::filesystem::path& path);

}  // namespace verbscope
