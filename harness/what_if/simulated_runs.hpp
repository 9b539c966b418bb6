// Runs points of one benchmark on copies of a cluster's profile, as it is or with twice of some resources.
#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include "common/record.hpp"
#include "harness/process/stop.hpp"
#include "harness/process/temp_folder.hpp"
#include "harness/sweep/benchmark_spec.hpp"
#include "harness/sweep/sweep.hpp"
#include "harness/what_if/run_cache.hpp"

namespace verbscope {

// Where and how they run.
struct RunPlace {
  std::filesystem::path binary;  // of the benchmark
  BenchmarkSpec spec;            // what it says of itself
  std::size_t jobs = 1;          // runs at the same time
  StopSource* stop = nullptr;
};

// One run.
struct Trial {
  Point point;
  std::vector<Resource> doubled{};  // capacities of the profile of which there is twice
  bool twice_as_fast = false;       // twice_as_fast() of everything instead
};

class SimulatedRuns {
 public:
  // The longest time of one run.
  static constexpr std::chrono::seconds kTimeout{120};

  // `profile` is the cluster's. The copies are in a temporary folder. The cache must outlive it.
  SimulatedRuns(Json profile, RunPlace place, RunCache& cache);

  // The whole record of the point. Throws InterruptedError at the stop.
  Record record(const Point& point);
  // An outcome for each trial. Throws likewise.
  std::vector<TrialOutcome> run(const std::vector<Trial>& trials);

  const Json& profile() const { return profile_; }
  const BenchmarkSpec& spec() const { return place_.spec; }
  std::size_t jobs() const { return place_.jobs; }
  // Different points that were simulated, those of the cache among them.
  std::size_t count() const { return count_; }

 private:
  Json profile_of(const Trial& trial) const;
  std::string key_of(const Json& profile, const Point& point) const;
  Record run_on(const Json& profile, const Point& point, std::size_t number) const;
  TrialOutcome outcome(const Trial& trial, std::size_t number) const;

  Json profile_;
  RunPlace place_;
  RunCache& cache_;
  std::string program_;  // which build of it
  TempFolder temp_;
  std::size_t count_ = 0;
};

}  // namespace verbscope
