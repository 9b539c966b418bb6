// Log errors of rows with changed parameters, measured by running the benchmarks on a copy of the profile.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/evidence/calibrated_parameters.hpp"
#include "harness/evidence/evidence.hpp"
#include "harness/process/temp_folder.hpp"

namespace verbscope {

class FitMeasurer {
 public:
  // `rows` are of one cluster, whose profile and calibrated parameters these are. Runs benchmarks of `folder`, `jobs`
  // at a time, until the stop.
  FitMeasurer(std::vector<EvidenceRow> rows, Json profile, std::vector<CalibratedParameter> parameters,
              std::filesystem::path folder, std::size_t jobs, StopSource* stop);

  // The logarithms of ours over theirs (evidence_outcomes) of the rows in these places. A row that fails is off by a
  // factor of ten; one that has no shape among the others counts as right. What ran before with the same values is not
  // run again. Throws InterruptedError at the stop.
  std::vector<double> log_errors(const std::vector<double>& values, const std::vector<std::size_t>& places);

 private:
  std::vector<EvidenceRow> rows_;
  Json profile_;
  std::vector<CalibratedParameter> parameters_;
  std::filesystem::path folder_;
  std::size_t jobs_;
  StopSource* stop_;
  TempFolder temp_;
  std::map<std::vector<double>, std::map<std::string, Record>> known_;  // by values, then by RowRun::identity
};

}  // namespace verbscope
