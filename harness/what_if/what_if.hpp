// Explains a point by running it again on simulated copies of its cluster: as it is, with twice of each resource that
// may limit it, and with each change of its options.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "analysis/explain.hpp"
#include "harness/process/stop.hpp"
#include "harness/what_if/change_search.hpp"
#include "harness/what_if/run_cache.hpp"

namespace verbscope {

struct WhatIfOptions {
  std::filesystem::path folder;  // of the programs
  std::string cluster;           // that records of hardware are of; empty: not known
  std::size_t jobs = 1;          // runs at the same time
  StopSource* stop = nullptr;
  RunBudget budget{};
  std::optional<Target> target{};
  // Receives how long the runs of a point will take, when that is long; may be empty.
  std::function<void(const std::string&)> told{};
};

// The answer for a record that is ok. Where no run can be made, or where the simulated point is not like the measured
// one, it is that of the closed form, with the reason. Throws InterruptedError at the stop.
Explanation explain_by_runs(const Record& record, const WhatIfOptions& options, RunCache& cache);

}  // namespace verbscope
