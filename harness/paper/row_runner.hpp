// Runs what reproduces a published row, and reads its figure.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analysis/published.hpp"
#include "common/record.hpp"
#include "harness/point/point_runner.hpp"

namespace verbscope {

// One benchmark with its options on a simulated cluster, or on this machine, and the key of the result that is read: a
// path into it ("latency.mean_us").
struct RowRun {
  std::string cluster, benchmark;
  Json params;
  std::string result_key;
  bool on_host = false;

  // "sim:CLUSTER" or "host".
  std::string fabric() const;

  // "cx6 read_rate connection=RC threads=40 ...".
  std::string text() const;

  // The same text for runs that are the same: the key of the result is no part of it.
  std::string identity() const;
};

// The benchmarks that yield a row's figure: one, or two for a ratio or a difference, at each value of a curve; none
// when the model does.
std::vector<RowRun> runs_of(const PublishedPoint& row);

// The reason why a row is not run: what it needs, or that its cluster has no profile. Empty: it can run.
std::string not_run_reason(const PublishedPoint& row);

// Runs a benchmark from `folder` on `fabric` ("sim:NAME", "sim:PROFILE.json" or "host"). Nothing when interrupted.
std::optional<Record> run_row(const RowRun& run, const std::string& fabric, const std::filesystem::path& folder,
                              StopSource* stop);

// The figure in the record of a run. Throws Error with `id` and the reason when the run failed or the record does not
// have the figure.
double run_value(const std::string& id, const RowRun& run, const Record& record);

// The figure of a row, in the row's unit, from the records of its runs by their identity. Throws like run_value.
double row_value(const PublishedPoint& row, const std::map<std::string, Record>& records);

// The figure of a row that the closed-form model reproduces, for the row's cluster as it ships. Throws like run_value.
double model_value(const PublishedPoint& row);

}  // namespace verbscope
