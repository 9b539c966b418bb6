// Fits all calibrated parameters of a cluster together, by running the benchmarks on changed copies of its profile.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/evidence/calibration.hpp"
#include "harness/evidence/evidence.hpp"
#include "harness/learn/parameters.hpp"
#include "harness/process/temp_folder.hpp"

namespace verbscope {

struct CalibrateOptions {
  std::string cluster;      // a name in configs/clusters, or a profile's path
  std::size_t rows = 60;    // maximum
  std::uint64_t seed = 1;   // of the rows and the folds
  double hours = 2;         // time limit, wall clock
  double known_within = 5;  // expected error of the profile's values in percent; 0: no penalty for moves
  int jobs = 0;             // runs at the same time; 0: one per CPU
  bool write = false;       // store the values of the fit to all rows in the profile
};

// Runs the benchmarks of `folder`. Prints the expected time, fits (joint_fit.hpp), and prints the parameters, the
// errors of the fit and the errors of rows left out. Returns the exit code. Throws Error for a profile without
// calibrated parameters, too few rows, or a time limit that is too short for any fit; InterruptedError at SIGINT.
int calibrate(const CalibrateOptions& options, const std::filesystem::path& folder, std::FILE* out);

// Measures the log errors of rows with changed parameters. Caches the runs of each set of values.
class FitMeasurer {
 public:
  // Precondition: all rows belong to the cluster of `profile`, and `parameters` are the profile's. Runs benchmarks of
  // `folder`, `jobs` at a time, until the stop.
  FitMeasurer(std::vector<EvidenceRow> rows, Json profile, std::vector<FitParameter> parameters,
              std::filesystem::path folder, std::size_t jobs, StopSource* stop);

  // The logarithms of ours / theirs (evidence_outcomes) for the rows with these indexes. A row that fails counts as off
  // by a factor of ten. A row without enough others for a shape counts as exact. Throws InterruptedError at the stop.
  std::vector<double> log_errors(const std::vector<double>& values, const std::vector<std::size_t>& rows);

 private:
  std::vector<EvidenceRow> rows_;
  Json profile_;
  std::vector<FitParameter> parameters_;
  std::filesystem::path folder_;
  std::size_t jobs_;
  StopSource* stop_;
  TempFolder temp_;
  std::map<std::vector<double>, std::map<std::string, Record>> records_;  // by values, then by RowRun::identity
};

}  // namespace verbscope
