// The fabrics of the benchmark `perftest`.
#pragma once

#include <string>
#include <vector>

#include "harness/perftest/options.hpp"
#include "microbench/bench/outcome.hpp"

namespace verbscope {

// Runs server and client of perftest on a simulated cluster. Throws Error, and InterruptedError at a signal.
Outcome run_simulated_perftest(const PerftestOptions& options, const std::vector<std::string>& command_line);

// Runs perftest's server or client on this machine, and exchanges what both print. `parameters`: the options on which
// both sides must agree. Throws Error.
Outcome run_perftest_on_host(const PerftestOptions& options, const Json& parameters);

}  // namespace verbscope
