// Explains a point by running it again on simulated copies of its cluster: unchanged, with each resource doubled that
// may limit it, and with each change of its options.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "analysis/explain.hpp"
#include "harness/process/stop.hpp"
#include "harness/what_if/change_search.hpp"
#include "harness/what_if/simulated_runs.hpp"

namespace verbscope {

struct WhatIfOptions {
  std::filesystem::path folder;  // folder of the benchmark programs
  std::string cluster;           // cluster for records of hardware; empty: unknown
  std::size_t jobs = 1;          // runs at the same time
  StopSource* stop = nullptr;
  RunBudget budget{};
  std::optional<Target> target{};
  // Receives a message if the runs of a point will take long. May be empty.
  std::function<void(const std::string&)> notify{};
};

// Explains a record that is ok. If no run is possible, or if the simulated point differs from the measured one, the
// explanation comes from the closed-form model and includes the reason. Throws InterruptedError at the stop.
Explanation explain_by_runs(const Record& record, const WhatIfOptions& options, RunCache& cache);

}  // namespace verbscope
