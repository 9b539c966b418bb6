// `verbscope validate`: runs published and measured rows on the simulated clusters, and prints the errors.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/evidence/calibration.hpp"
#include "harness/evidence/evidence.hpp"
#include "harness/evidence/measured_curves.hpp"

namespace verbscope {

struct ValidateOptions {
  std::string only;        // a set (a paper or a measured one) or a cluster; empty: everything
  std::string rows;        // a CSV file whose rows replace the installed ones; empty: none
  std::size_t sample = 0;  // number of rows to draw; 0: all
  std::uint64_t seed = 1;  // of the draw
  int jobs = 0;            // runs at the same time; 0: one per CPU
  std::string out;         // page to write; empty: none
  std::string plots;       // folder for figures of measured curves and ours; empty: none
};

// Runs the benchmarks of `folder` and prints the summary. Returns 0 if no row failed and the measured rows meet the
// goals below, else 1; kExitInterrupted after SIGINT or SIGTERM. Throws UsageError for a set or cluster without rows;
// the message lists the known ones.
int validate(const ValidateOptions& options, const std::filesystem::path& folder, std::FILE* out);

// Goals for the measured rows of a cluster: largest median and 90th percentile of the errors, in percent.
inline constexpr double kMedianGoal = 10;
inline constexpr double kPercentile90Goal = 25;

struct Validation {
  std::vector<EvidenceOutcome> outcomes;
  std::vector<FittedCluster> fitted;
  std::vector<MeasuredCurve> curves;

  // True if no row failed and the measured rows of each cluster meet the goals.
  bool good() const;
};

// Tables of errors by set and slice, and by cluster with the verdict; knees and cliffs; parameters; rows that failed or
// did not run, with reasons. Ends with a newline.
std::string validation_summary(const Validation& validation, std::size_t width = 0);
// One line per row: theirs, ours, and the error or the reason why there is none. Ends with a newline.
std::string validation_rows(const Validation& validation);
// A page with both, and with the command that made it.
std::string validation_page(const Validation& validation, const std::string& command);

}  // namespace verbscope
