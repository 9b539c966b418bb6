// The main program of every benchmark: options, the fabric, the record, the exit code.
#pragma once

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/report.hpp"

namespace verbscope {

// Runs one point on the fabric that options.fabric names. Throws Error.
Outcome run_on_fabric(Benchmark& benchmark, const Options& options, const OptionTable& table);

// Exit codes as run_main: 0 done, 1 failed (also a point that ran and failed), 2 wrong usage. A failed point is written
// as a failed record too.
int benchmark_main(Program& program, int argc, char** argv);

}  // namespace verbscope
