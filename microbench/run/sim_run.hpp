// The driver for a simulated cluster: one process runs every node, in virtual time (memory_link.hpp).
#pragma once

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/outcome.hpp"

namespace verbscope {

// Runs one point on the cluster that options.fabric names. Throws Error.
Outcome run_on_simulator(const Benchmark& benchmark, const Options& options);

}  // namespace verbscope
