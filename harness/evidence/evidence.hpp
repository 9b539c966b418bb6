// Published and measured rows together: which of them can run here, and what running them yields.
#pragma once

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

// The published table, then the measured sets that ship.
std::vector<EvidenceRow> all_evidence();
// The rows of one file of a measured form.
std::vector<EvidenceRow> evidence_of_file(const std::filesystem::path& file);

// What the programs of a folder say of themselves; each is asked once.
class Programs {
 public:
  explicit Programs(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The reason why a run is not possible with these programs: "no benchmark NAME", "no program NAME" (it was not
  // built), "NAME has no option KEY". Empty: it
  // is.
  std::string lacks(const RowRun& run);

 private:
  std::filesystem::path folder_;
  std::map<std::string, BenchmarkSpec> specs_;  // by benchmark
};

// Gives every row that cannot run its reason: what it needs, a cluster without a profile, a program or an option that
// is not there. Rows that have a reason keep it.
void note_not_run(std::vector<EvidenceRow>& rows, Programs& programs);

// `count` different numbers below `size`, drawn with `seed`, in rising order; all of them when there are no more.
std::vector<std::size_t> drawn(std::size_t size, std::size_t count, std::uint64_t seed);

// How runs are made.
struct EvidenceRuns {
  std::filesystem::path folder;  // of the programs
  std::size_t jobs = 1;          // at the same time
  StopSource* stop = nullptr;
  std::function<std::string(const std::string&)> fabric;       // of a cluster
  std::function<void(const RowRun&, const Record&)> finished;  // called after each, one at a time; may be empty
};

// Runs what the rows run that are not listed as not run, each different run once, and yields the records by
// RowRun::identity. Throws InterruptedError at the stop.
std::map<std::string, Record> run_evidence(const std::vector<EvidenceRow>& rows, const EvidenceRuns& runs);

// So many rows of a source have a shape.
inline constexpr std::size_t kMinShape = 3;

// What became of a row.
struct EvidenceOutcome {
  const EvidenceRow* row = nullptr;
  std::optional<double> ours;           // in the row's unit
  std::string failure;                  // why there is no figure of a row that was run
  std::optional<double> error_percent;  // signed; absent: the row counts in no error figure
  std::string uncounted;                // why a row with a figure does not
};

// The figures of the rows and their errors. A row that counts by its shape is divided by the median of those of its
// source and cluster, ours as theirs; where fewer than kMinShape of these
// have a figure there is no shape.
std::vector<EvidenceOutcome> evidence_outcomes(const std::vector<EvidenceRow>& rows,
                                               const std::map<std::string, Record>& records);

}  // namespace verbscope
