// Runs a point on copies of a cluster's profile in which resources have twice their capacity, or with other options.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "common/record.hpp"
#include "harness/process/stop.hpp"
#include "harness/process/temp_folder.hpp"
#include "harness/sweep/benchmark_spec.hpp"
#include "harness/sweep/sweep.hpp"
#include "harness/what_if/limit_search.hpp"

namespace verbscope {

// Where and how they run.
struct RunPlace {
  std::filesystem::path binary;  // of the benchmark
  BenchmarkSpec spec;            // what it says of itself
  std::size_t jobs = 1;          // runs at the same time
  StopSource* stop = nullptr;
};

class SimulatedRuns {
 public:
  // The longest time of one run.
  static constexpr std::chrono::seconds kTimeout{120};

  // `record` has the point, `profile` the cluster. The copies are in a folder of the moment.
  SimulatedRuns(const Record& record, Json profile, RunPlace place);

  // The record of the point as it is. Throws InterruptedError at the stop.
  Record base();
  // An outcome for each trial. Throws likewise.
  std::vector<TrialOutcome> run(const std::vector<Trial>& trials);

  std::size_t count() const { return count_; }

 private:
  Record run_on(const std::filesystem::path& profile, const Point& point) const;
  Record run_one(const Trial& trial, std::size_t number) const;

  const Record& record_;
  Json profile_;
  RunPlace place_;
  Point point_;
  TempFolder temp_;
  std::size_t count_ = 0;
};

}  // namespace verbscope
