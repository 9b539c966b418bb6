// The main program of a benchmark without peers: threads of this machine that work on its memory. It has the options,
// the window, the record and the exit codes of the others, and `fabric` "host": nothing crosses a network.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "microbench/bench/benchmark.hpp"
#include "microbench/bench/option_table.hpp"
#include "microbench/run/outcome.hpp"

namespace verbscope {

// Options that every benchmark without peers has: those of the others that mean something here.
struct LocalOptions {
  std::uint32_t threads = 1;
  std::optional<Picos> duration;
  std::optional<Picos> warmup;
  std::optional<Picos> longest;
  std::uint64_t seed = 1;
  std::string fabric = "host";
  std::string cores;
  std::string counter_sources = "papi";
  bool require_counters = false;
  std::string out_json_file;
};

// One thread's work: step does a piece of it and yields how many operations that were.
class LocalWork {
 public:
  virtual ~LocalWork() = default;
  virtual std::uint64_t step() = 0;
};

class LocalBenchmark {
 public:
  virtual ~LocalBenchmark() = default;
  virtual Description describe() const = 0;
  virtual void options(OptionTable& table) = 0;
  // Refuses options that are wrong by themselves. Throws UsageError.
  virtual void check(const LocalOptions& options) const = 0;
  // Before the window, on the first of the threads' cores: what has to be known of the host, and the memory.
  virtual void prepare(const LocalOptions& options) = 0;
  virtual std::unique_ptr<LocalWork> work(std::uint32_t thread) = 0;
  // After the window, in which the threads did `rate_mops`: adds the benchmark's own keys and its prediction. Runs
  // where prepare did.
  virtual void finish(const LocalOptions& options, double rate_mops, Outcome& outcome) = 0;
  // Lines for the console, each ending in a newline.
  virtual std::string report(const Record& record) const = 0;
};

// Exit codes as run_main: 0 done, 1 failed, 2 wrong usage; a failed point is written as a failed record too.
int local_main(LocalBenchmark& benchmark, int argc, char** argv);

}  // namespace verbscope
