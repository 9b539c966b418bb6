// Published and measured rows together: the rows that can run here, their figures from simulated runs, and the errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/evidence/measured_rows.hpp"
#include "harness/paper/row_runner.hpp"
#include "harness/sweep/benchmarks.hpp"

namespace verbscope {

// The published table, then the installed measured sets.
std::vector<EvidenceRow> all_evidence();
// The rows of one file in a measured form.
std::vector<EvidenceRow> evidence_of_file(const std::filesystem::path& file);

// The benchmarks in a folder and their options. Each program is asked once for its description.
class Programs {
 public:
  explicit Programs(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Why these programs cannot do a run: "no benchmark NAME", "no program NAME" (not built), "NAME has no option KEY".
  // Empty if they can.
  std::string missing_reason(const RowRun& run);

 private:
  std::filesystem::path folder_;
  std::map<std::string, BenchmarkSpec> specs_;  // by benchmark
};

// Sets the reason of every row that cannot run: a requirement, a cluster without profile, a missing program or option.
// Rows that already have a reason keep it.
void set_not_run_reasons(std::vector<EvidenceRow>& rows, Programs& programs);

// Draws `count` different numbers below `size` in random order; all numbers if there are fewer. draw_numbers:
// ascending.
std::vector<std::size_t> shuffled(std::size_t size, std::size_t count, std::uint64_t seed);
std::vector<std::size_t> draw_numbers(std::size_t size, std::size_t count, std::uint64_t seed);

struct EvidenceRuns {
  std::filesystem::path folder;  // of the programs
  std::size_t jobs = 1;          // runs at the same time
  StopSource* stop = nullptr;
  std::function<std::string(const std::string&)> fabric;       // fabric for a cluster
  std::function<void(const RowRun&, const Record&)> finished;  // called after each run, one at a time; may be empty
};

// The distinct runs of all rows without a reason, by RowRun::identity.
std::map<std::string, RowRun> distinct_runs(const std::vector<EvidenceRow>& rows);

// Runs the benchmarks of all rows without a reason, each distinct run once. Returns the records by RowRun::identity.
// Throws InterruptedError at the stop.
std::map<std::string, Record> run_evidence(const std::vector<EvidenceRow>& rows, const EvidenceRuns& runs);

// Rows that count by shape are compared within a group: one source, cluster and benchmark.
std::string shape_group(const EvidenceRow& row);
// Minimum number of rows of a group that have a shape.
inline constexpr std::size_t kMinShapeRows = 3;

// Where the value of a row is expected, in the row's unit.
struct ValueInterval {
  double low = 0, high = 0;
};

struct EvidenceOutcome {
  const EvidenceRow* row = nullptr;
  std::optional<double> ours;             // in the row's unit
  std::string failure;                    // why a row that ran has no figure
  std::optional<double> error_percent;    // signed; absent if the row counts in no error figure
  std::string uncounted;                  // why a row with a figure does not count
  std::optional<ValueInterval> interval;  // set by add_intervals
};

// The figures of the rows and their errors. Rows that count by shape are first divided by the median of their group, on
// both sides. They have no error if fewer than kMinShapeRows of the group have a figure.
std::vector<EvidenceOutcome> evidence_outcomes(const std::vector<EvidenceRow>& rows,
                                               const std::map<std::string, Record>& records);

// The middle value, or the mean of the two middle values. Precondition: `values` is not empty.
double median(std::vector<double> values);

// Statistics of absolute errors in percent. All are 0 without errors.
struct ErrorFigures {
  std::size_t rows = 0;
  double median = 0, percentile_90 = 0, worst = 0;  // the 90th percentile by nearest rank
  std::size_t worst_at = 0;                         // index of the worst error
};
ErrorFigures error_figures(const std::vector<double>& errors_percent);

}  // namespace verbscope
