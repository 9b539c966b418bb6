// Runs points of one benchmark on copies of a cluster's profile: unchanged, or with some resources doubled.
#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include "common/record.hpp"
#include "harness/process/stop.hpp"
#include "harness/process/temp_folder.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/sweep.hpp"
#include "harness/what_if/run_cache.hpp"

namespace verbscope {

// How the runs are made.
struct RunPlace {
  std::filesystem::path binary;  // of the benchmark
  BenchmarkSpec spec;            // its description of itself
  std::size_t jobs = 1;          // runs at the same time
  StopSource* stop = nullptr;
};

struct Trial {
  Point point;
  std::vector<Resource> doubled{};  // capacities of the profile to double
  bool twice_as_fast = false;       // apply twice_as_fast() to the profile instead
};

class SimulatedRuns {
 public:
  // Time limit of one run.
  static constexpr std::chrono::seconds kTimeout{120};

  // `profile`: the cluster's. Copies go to a temporary folder. The cache must outlive this object.
  SimulatedRuns(Json profile, RunPlace place, RunCache& cache);

  // Runs the point and returns its record. Throws InterruptedError at the stop.
  Record record(const Point& point);
  // Returns one outcome per trial. Throws InterruptedError at the stop.
  std::vector<TrialOutcome> run(const std::vector<Trial>& trials);

  const Json& profile() const { return profile_; }
  const BenchmarkSpec& spec() const { return place_.spec; }
  std::size_t jobs() const { return place_.jobs; }
  // Number of different points simulated, including those found in the cache.
  std::size_t count() const { return count_; }

 private:
  Json profile_of(const Trial& trial) const;
  std::string key_of(const Json& profile, const Point& point) const;
  Record run_on(const Json& profile, const Point& point, std::size_t number) const;
  TrialOutcome outcome(const Trial& trial, std::size_t number) const;

  Json profile_;
  RunPlace place_;
  RunCache& cache_;
  std::string program_;  // identifies the build of the program
  TempFolder temp_;
  std::size_t count_ = 0;
};

}  // namespace verbscope
