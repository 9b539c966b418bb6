// Explains a point by running it again on simulated copies of its cluster: as it is, with twice of each resource that
// may limit it, and with the options of each piece of advice.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "analysis/what_if.hpp"
#include "common/record.hpp"
#include "harness/process/stop.hpp"

namespace verbscope {

struct WhatIfOptions {
  std::filesystem::path folder;  // of the programs
  std::string cluster;           // that records of hardware are of; empty: not known
  std::size_t jobs = 1;          // runs at the same time
  StopSource* stop = nullptr;
  // Hears how long the runs of a point will take, when that is long; may be empty.
  std::function<void(const std::string&)> told{};
};

// What the runs say of a record that is ok; with a reason (WhatIf::not_run) where there can be none, or where the
// simulated point is not like the measured one. Throws InterruptedError at the stop.
WhatIf what_if(const Record& record, const WhatIfOptions& options);

}  // namespace verbscope
