// The main program of every benchmark: options, the fabric, the record, the exit code.
#pragma once

#include <concepts>
#include <functional>
#include <memory>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/report.hpp"

namespace verbscope {

// Runs one point on the fabric that options.fabric names. Throws Error.
Outcome run_on_fabric(Benchmark& benchmark, const Options& options, const OptionTable& table);

// Exit codes as run_main: 0 done, 1 failed (also a point that ran and failed), 2 wrong usage. A failed point is written
// as a failed record too. With --serve (common/served.hpp) each command has a program of its own from `make`.
int benchmark_main(const std::function<std::unique_ptr<Program>()>& make, int argc, char** argv);
// For a program that is made from `arguments`.
template <std::derived_from<Program> P, class... Arguments>
int benchmark_main(int argc, char** argv, const Arguments&... arguments) {
  return benchmark_main([&] { return std::make_unique<P>(arguments...); }, argc, argv);
}

}  // namespace verbscope
