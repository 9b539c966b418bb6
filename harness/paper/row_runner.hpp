// Runs the benchmarks that reproduce a published row, and reads the figure from their records.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analysis/published.hpp"
#include "common/record.hpp"
#include "harness/point/point_runner.hpp"

namespace verbscope {

// One benchmark with its options on a simulated cluster, or on this machine. `result_key` is the path of the figure in
// the result ("latency.mean_us").
struct RowRun {
  std::string cluster, benchmark;
  Json params;
  std::string result_key;
  bool on_host = false;
  Json profile = Json::object();  // PublishedPoint::profile

  // "sim:CLUSTER" or "host".
  std::string fabric() const;

  // "cx6 read_rate connection=RC threads=40 ...".
  std::string text() const;

  // Equal for equal runs. Does not depend on `result_key`.
  std::string identity() const;
};

// The runs for a row's figure: one, or two for a ratio or a difference, at each value of a curve. Empty if the figure
// comes from the model.
std::vector<RowRun> runs_of(const PublishedPoint& row);

// Why a row cannot run: a missing requirement, or no profile for its cluster. Empty if it can run.
std::string not_run_reason(const PublishedPoint& row);

// Runs a benchmark from `folder` on `fabric` ("sim:NAME", "sim:PROFILE.json" or "host"). Empty if interrupted.
std::optional<Record> run_row(const RowRun& run, const std::string& fabric, const std::filesystem::path& folder,
                              StopSource* stop);

// Computes the figure of a row, in the row's unit, from the records of its runs, keyed by RowRun::identity. Throws
// Error with the row's id and the reason if a run failed or its record has no such figure.
double row_value(const PublishedPoint& row, const std::map<std::string, Record>& records);

// Computes the figure of a row from the closed-form model, with the unchanged profile of the row's cluster. Throws
// Error with the row's id and the reason if it has no such figure.
double model_value(const PublishedPoint& row);

}  // namespace verbscope
