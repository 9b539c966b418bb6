// How many simulated SENDs a second of wall clock the simulator does on one core, set-up included. docs/performance.md
// says how to run it and what it showed.
#include <benchmark/benchmark.h>

#include "common/error.hpp"
#include "microbench/frame/sim_run.hpp"
#include "tests/microbench/test_benchmarks.hpp"

namespace verbscope {
namespace {

void simulated_sends(benchmark::State& state, const std::string& line) {
  const test::SendBenchmark sends(true);
  const test::OptionSet set("--fabric sim:cib -D 20ms " + line);
  std::uint64_t messages = 0;
  for (auto _ : state) {
    const Outcome outcome = run_on_simulator(sends, set.options);
    if (!outcome.failure.empty()) fail("{}", outcome.failure);
    messages += outcome.result.at("messages_received").get<std::uint64_t>();
  }
  state.counters["SENDs"] = benchmark::Counter(static_cast<double>(messages), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(simulated_sends, ud_post_list_16, "-c UD -s 60 -I 60 -l 16 -r 128 --clients 2 --threads 8 -q 4")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulated_sends, ud_header_only, "-c UD --header_only -l 16 --threads 8 -q 4")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulated_sends, ud_post_list_1, "-c UD -s 60 -I 60 --threads 14")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulated_sends, rc_post_list_16, "-c RC -s 60 -I 60 -l 16 --threads 8 -q 4")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace verbscope

BENCHMARK_MAIN();
