// The result record, which every benchmark writes for every point on every fabric (docs/records.md,
// results/record.schema.json). All records are written and read here.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fd.hpp"
#include "common/json.hpp"
#include "common/pcie_events.hpp"

namespace verbscope {

// The schema's name in every record. Other values are refused.
inline constexpr const char* kRecordSchema = "verbscope.record/1";

// `imported`: read from the output of another tool, not measured by a benchmark of this project.
enum class RecordStatus { ok, failed, imported };
const char* to_string(RecordStatus status);

// The counts of one source on one node in the measurement interval.
struct CounterReport {
  std::string source;   // "sim", "pcm-pcie", ...
  std::string node;     // the node of the PCIe slot: "server", "client0", ...
  std::string blind;    // what this source cannot see; empty: nothing
  double window_s = 0;  // length of the interval, seconds (simulated ones under sim:)
  PcieCounts events;    // differences over the interval
  // Names of events that this source does not count: 0 in `events`, null in JSON.
  std::vector<std::string> unseen = {};
  Json extra = Json::object();  // further counters of this source; keys carry units

  bool sees(const std::string& event) const;
};

// The operations of `result` in the interval of `report`, which may differ from that of the result. 0: unknown.
double operations_in_window(const Json& result, const CounterReport& report);

struct Record {
  std::string benchmark;
  RecordStatus status = RecordStatus::ok;
  std::string reason;            // one line; empty unless status is failed
  Json config = Json::object();  // every parameter with its default
  Json result = Json::object();  // keys carry units
  std::vector<CounterReport> counters;
  Json prediction;                    // object, or null without a model
  Json environment = Json::object();  // made by make_environment; the only place for host facts and wall-clock time
  std::string file = {};  // the results file it was read from, if there are several: "base"; not written to JSON
};

// Throws Error if the record breaks a rule (failed without a reason, environment without a fabric ...).
Json to_json(const Record& record);

// A record of an unsupported schema version.
class UnknownSchema : public Error {
 public:
  using Error::Error;
};

// Throws Error with `where: ...` if `json` is not a record, and UnknownSchema if its schema is not kRecordSchema.
Record record_from_json(const Json& json, const std::string& where);

// The identity of a point, for --resume: `point` on one line, with its keys sorted at every level. The harness stores
// {benchmark, params, repetition, seed, fabric} in config.point.
std::string point_key(const Json& point);

// A results file has one record per line (JSON Lines). Records are appended as points finish, so that an interrupted
// sweep keeps all finished ones.

// Appends records to a file with exclusive access: a second writer, also in another process, is refused. If the file
// ends within a line, writing continues on a new line.
class ResultsWriter {
 public:
  // Opens or creates `path` at once, so that an unwritable file fails before the measurement. `option`: the option that
  // named it. Throws as check_output does, and Error.
  explicit ResultsWriter(std::filesystem::path path, std::string option = "--out",
                         const std::vector<std::filesystem::path>& inputs = {});

  // Writes the record as one line and flushes it to the device. Throws Error on failure; the file is then unchanged. If
  // the file was deleted or renamed meanwhile, prints a warning and creates a new file.
  void append(const Record& record);

  const std::filesystem::path& path() const { return path_; }
  // True if that happened: the file does not contain all records.
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

// Calls `visit` for each complete record of the file in order, with the length of its line in bytes, and `warn` for
// each line that is not a record. Throws Error if the file cannot be read, UnknownSchema if a record has another
// version.
void each_result(const std::filesystem::path& path, const std::function<void(Record record, std::size_t bytes)>& visit,
                 const std::function<void(const std::string& warning)>& warn);
// All records and warnings of a file.
Results read_results(const std::filesystem::path& path);
// The same, but prints the warnings instead of returning them.
Results read_results_warning(const std::filesystem::path& path);

// Facts about the build, compiled in. git_revision is "unknown" outside a git checkout and ends in "-dirty" if files
// were changed.
struct BuildInfo {
  std::string version;
  std::string git_revision;
  std::string build_type;
  std::string compiler;
  std::string flags;
};
BuildInfo build_info();

// Returns the `environment` of a record: fabric ("verbs", "sim:NAME", "null" or "host"), simulated, host and build
// facts, UTC time, command line. Throws Error for another fabric.
Json make_environment(const std::string& fabric, const std::vector<std::string>& command_line);

// The fabric of benchmarks without peers: this machine only.
inline constexpr const char* kHostFabric = "host";

// Begins the name of a simulated fabric; the cluster's name or the path of its profile follows.
inline constexpr std::string_view kSimulatedPrefix = "sim:";

// True if `fabric` is one of the four forms; true if it is a simulated one.
bool is_fabric(const std::string& fabric);
bool is_simulated(const std::string& fabric);

}  // namespace verbscope
