// Runs points of one benchmark on copies of a cluster's profile: unchanged, or with some resources doubled. Outcomes
// are kept in a file beside the results. analysis/resource.cpp lists the parameters of each resource.
// (tests/analysis/attribution.py has a separate table, so that each checks the other.)
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/resource.hpp"
#include "common/json.hpp"
#include "common/record.hpp"
#include "harness/process/served_program.hpp"
#include "harness/process/stop.hpp"
#include "harness/process/temp_folder.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

// The parameter "section.key" of a profile, an object with a value and its source. Null if there is none.
const Json* find_parameter(const Json& profile, std::string_view name);

// True if the profile has a parameter that doubles the resource, a capacity(). False for resources that options
// determine.
bool can_double(const Json& profile, Resource resource);

// Returns the profile with each of these resources doubled in every machine: times that only they need are halved,
// sizes and numbers doubled. A parameter that two of them share is changed once.
Json double_resources(Json profile, const std::vector<Resource>& resources);

// Returns the profile with every part twice as fast. For a program that keeps one operation outstanding, this has the
// effect of keeping two.
Json double_speed(Json profile);

// The parameters of those resources whose values are all assumed: "nic.qp_context_cache_bytes".
std::vector<std::string> assumed_parameters(const Json& profile, const std::vector<Resource>& resources);

struct TrialOutcome {
  double mops = 0;
  double gbit_per_s = 0;  // 0: the benchmark reports none
  double latency_us = 0;  // median; 0: the benchmark reports none
  std::string failure{};  // empty: it ran
};

// Keeps outcomes in a file beside a results file, so that later commands need not repeat the runs.
class RunCache {
 public:
  // Reads `file` if it exists and ignores foreign lines. If the path is empty or the file cannot be written, outcomes
  // are kept in memory only.
  explicit RunCache(std::filesystem::path file = {});

  // The key contains everything that the outcome depends on: program, profile and options. Thread-safe.
  std::optional<TrialOutcome> find(const std::string& key) const;
  void add(const std::string& key, const TrialOutcome& outcome);

 private:
  std::filesystem::path file_;
  mutable std::mutex mutex_;
  std::map<std::string, TrialOutcome> outcomes_;
};

// The path of the cache of a results file.
std::filesystem::path run_cache_of(const std::filesystem::path& results);

// How the runs are made.
struct RunSetup {
  std::filesystem::path binary;  // of the benchmark
  BenchmarkSpec spec;            // its description of itself
  std::size_t jobs = 1;          // runs at the same time
  StopSource* stop = nullptr;
};

struct Trial {
  Point point;
  std::vector<Resource> doubled{};  // capacities of the profile to double
  bool double_speed = false;        // apply double_speed() to the profile instead
};

class SimulatedRuns {
 public:
  // `profile`: the cluster's. Copies go to a temporary folder. The cache must outlive this object.
  SimulatedRuns(Json profile, RunSetup setup, RunCache& cache);

  // Runs the point and returns its record. Throws InterruptedError at the stop.
  Record record(const Point& point);
  // Returns one outcome per trial. Throws InterruptedError at the stop.
  std::vector<TrialOutcome> run(const std::vector<Trial>& trials);

  const Json& profile() const { return profile_; }
  const BenchmarkSpec& spec() const { return setup_.spec; }
  std::size_t jobs() const { return setup_.jobs; }
  // Number of different points simulated, including those found in the cache.
  std::size_t count() const { return count_; }

 private:
  Json profile_of(const Trial& trial) const;
  std::string key_of(const Json& profile, const Point& point) const;
  Record run_on(const Json& profile, const Point& point, std::size_t number);
  TrialOutcome outcome(const Json& profile, const Point& point, std::size_t number);

  Json profile_;
  RunSetup setup_;
  RunCache& cache_;
  std::string program_;  // identifies the build of the program
  TempFolder temp_;
  ServedPrograms served_;
  std::size_t count_ = 0;
};

}  // namespace verbscope
