#include "tools/calibrate/fit_measurer.hpp"

#include <algorithm>
#include <cmath>

#include "common/files.hpp"

namespace verbscope {
namespace {

constexpr double kFailed = 2.302585;  // ln 10

// What is kept of a record: its status and the numbers of its result.
Record slim(const Record& record) {
  Record out;
  out.status = record.status;
  out.reason = record.reason;
  for (const auto& [key, value] : record.result.items()) {
    if (value.is_number()) out.result[key] = value;
  }
  return out;
}

double log_error(const EvidenceOutcome& outcome) {
  if (!outcome.failure.empty()) return kFailed;
  return outcome.error_percent ? std::log(std::max(0.001, 1 + *outcome.error_percent / 100)) : 0;
}

}  // namespace

FitMeasurer::FitMeasurer(std::vector<EvidenceRow> rows, Json profile, std::vector<CalibratedParameter> parameters,
                         std::filesystem::path folder, std::size_t jobs, StopSource* stop)
    : rows_(std::move(rows)),
      profile_(std::move(profile)),
      parameters_(std::move(parameters)),
      folder_(std::move(folder)),
      jobs_(jobs),
      stop_(stop) {}

std::vector<double> FitMeasurer::log_errors(const std::vector<double>& values, const std::vector<std::size_t>& places) {
  std::map<std::string, Record>& known = known_[values];
  std::vector<EvidenceRow> asked, missing;
  for (const std::size_t place : places) {
    asked.push_back(rows_[place]);
    const auto runs = runs_of(rows_[place].point);
    const bool all_known =
        std::ranges::all_of(runs, [&known](const RowRun& run) { return known.contains(run.identity()); });
    if (!all_known) missing.push_back(rows_[place]);
  }
  if (!missing.empty()) {
    const std::string file = temp_.file(missing.front().point.cluster + ".json");
    replace_file(file, with_values(profile_, parameters_, values).dump(2) + "\n");
    const auto records = run_evidence(missing, {.folder = folder_,
                                                .jobs = jobs_,
                                                .stop = stop_,
                                                .fabric = [&file](const std::string&) { return "sim:" + file; },
                                                .finished = {}});
    for (const auto& [identity, record] : records) known.insert_or_assign(identity, slim(record));
  }
  std::vector<double> errors;
  for (const EvidenceOutcome& outcome : evidence_outcomes(asked, known)) errors.push_back(log_error(outcome));
  return errors;
}

}  // namespace verbscope
