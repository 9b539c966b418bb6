// Simulated operations per second of CPU time on one core, including set-up; and the cost of an operation with 64 busy
// nodes instead of 2. docs/performance.md describes how to run it, and its results.
#include <benchmark/benchmark.h>

#include <chrono>

#include "common/error.hpp"
#include "microbench/atomic/client.hpp"
#include "microbench/run/sim_fabric.hpp"
#include "tests/microbench/test_benchmarks.hpp"
#include "tests/perf/all_active.hpp"

namespace verbscope {
namespace {

class AtomicBenchmark final : public Benchmark {
 public:
  AtomicBenchmark() { atomics_.counters = 1 << 16; }
  Description describe() const override { return {"test_atomics", "For tests."}; }
  Plan draft() const override {
    return {.operation = {.verb = atomics_.verb,
                          .driver = Side::client,
                          .counted = Side::client,
                          .most_outstanding = atomics_.most_outstanding}};
  }
  QueueNeeds needs(const Operation& op, Side) const override {
    return {.send_depth = op.tx_depth, .completions = op.tx_depth};
  }
  RegionNeeds region(const Operation&, Side side, std::uint32_t) const override {
    if (side == Side::client) return {};
    return {.bytes = atomics_.region_bytes(), .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
  }
  std::unique_ptr<Workload> setup(const ThreadSetup& setup) const override {
    return setup.side == Side::server ? make_counter_holder(setup, atomics_) : make_atomic_client(setup, atomics_);
  }
  Prediction predict(const ClusterWire& cluster, const Operation& op, int ports) const override {
    return predict_responder(cluster, verb_shape(op, ports));
  }

 private:
  AtomicOptions atomics_;
};

// Adds up what the adapters of all nodes have taken in and served.
std::uint64_t served(const Outcome& outcome) {
  std::uint64_t sum = 0;
  for (const CounterReport& node : outcome.counters) {
    for (const char* kind : {"messages_received", "writes_received", "reads_served", "atomics_served"}) {
      sum += node.extra.at(kind).get<std::uint64_t>();
    }
  }
  return sum;
}

void simulate(benchmark::State& state, Benchmark& load, const Options& options) {
  std::uint64_t operations = 0;
  for (auto _ : state) {
    const Outcome outcome = SimFabric(load, options).run();
    if (!outcome.failure.empty()) fail("{}", outcome.failure);
    operations += served(outcome);
  }
  state.counters["operations"] = benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate);
}

constexpr const char* kRun = "--fabric sim:cib --warmup 0us -D 10ms ";

void send(benchmark::State& state, const std::string& line) {
  test::SendBenchmark load(true);
  simulate(state, load, test::OptionSet(kRun + line).options);
}
void receive(benchmark::State& state, const std::string& line) {
  test::SendBenchmark load(false);
  simulate(state, load, test::OptionSet(kRun + line).options);
}
void one_sided(benchmark::State& state, const std::string& line) {
  test::OneSidedBenchmark load;
  const test::OptionSet set(kRun + line, &load);
  simulate(state, load, set.options);
}
void fetch_and_add(benchmark::State& state, const std::string& line) {
  AtomicBenchmark load;
  simulate(state, load, test::OptionSet(kRun + line).options);
}

#define LOAD(function, name, line) BENCHMARK_CAPTURE(function, name, line)->Unit(benchmark::kMillisecond)

LOAD(send, ud_post_list_16, "-c UD -s 60 -I 60 -l 16 -r 128 --clients 2 --threads 8 -q 4");
LOAD(send, ud_header_only, "-c UD --header_only -l 16 --threads 8 -q 4");
LOAD(send, ud_post_list_1, "-c UD -s 60 -I 60 --threads 14");
LOAD(send, rc_post_list_16, "-c RC -s 60 -I 60 -l 16 --threads 8 -q 4");
LOAD(receive, ud, "-c UD -s 32 -I 32 -l 16 --threads 8 --clients 2");
LOAD(one_sided, read_out, "--verb read -s 64 --threads 8 -q 2");
LOAD(one_sided, read_in, "--verb read --direction in -s 64 -q 56 --clients 4");
LOAD(one_sided, uc_write_out, "--verb write -c UC -s 32 -I 32 -l 16 --threads 8 -q 2");
LOAD(one_sided, rc_write_out, "--verb write -c RC -s 32 -I 32 -l 16 --threads 8 -q 2");
LOAD(fetch_and_add, on_65536_counters, "-s 8 -Q 1 --threads 8 --clients 2");

// READs a second of wall clock, without the set-up.
double all_active_rate(const benchmark::State& state, int nodes, const SimWork& work = {}) {
  constexpr std::uint64_t kOperations = 1 << 20;
  test::AllActiveLoad load{.nodes = nodes,
                           .qps = static_cast<int>(state.range(0)),
                           .window = static_cast<int>(state.range(1)),
                           .work = work};
  load.operations = kOperations / static_cast<std::uint64_t>(nodes * test::AllActiveLoad::threads);
  test::AllActive cluster(load);
  const auto begin = std::chrono::steady_clock::now();
  const std::uint64_t done = cluster.run();
  return static_cast<double>(done) / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Tells how much a READ costs on 64 nodes over what it costs on 2: by one thread of this machine, and 64 nodes by two.
void all_active_64_nodes_over_2(benchmark::State& state) {
  double few = 0, by_one = 0, by_two = 0;
  for (auto _ : state) {
    few = all_active_rate(state, 2);
    by_one = all_active_rate(state, 64);
    by_two = all_active_rate(state, 64, test::shared_out(64, 16, 2));
  }
  state.counters["rate_2"] = few;
  state.counters["rate_64"] = by_one;
  state.counters["rate_64_by_two"] = by_two;
  state.counters["cost_ratio"] = few / by_one;
  state.counters["cost_ratio_by_two"] = few / by_two;
}
BENCHMARK(all_active_64_nodes_over_2)
    ->ArgNames({"qps", "reads"})
    ->Args({1, 1})
    ->Args({4, 4})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace verbscope

BENCHMARK_MAIN();
