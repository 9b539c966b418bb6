#include "microbench/run/local_benchmark.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <list>
#include <thread>

#include "common/cli.hpp"
#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/record.hpp"
#include "common/text.hpp"
#include "counters/collector.hpp"
#include "counters/sources.hpp"
#include "machine/threads.hpp"
#include "microbench/bench/options.hpp"
#include "microbench/run/record_sink.hpp"
#include "microbench/run/report.hpp"
#include "microbench/run/steadiness.hpp"

namespace verbscope {

namespace {

constexpr std::uint32_t kMostThreads = 4096;
constexpr double kSteadyWithin = 0.25;  // as other points on hosts: the machine has other things to do

void add_options(OptionTable& table, LocalOptions& o) {
  table.integer("--threads", o.threads, 1u, kMostThreads, "threads, each pinned to a core");
  table.duration("-D,--duration", o.duration, "measure for this long (default 1 s)");
  table.duration("--warmup", o.warmup, "warm up for this long (default 200 ms)", OptionTable::Zero::allowed);
  table.duration("--longest", o.longest,
                 "if the rate is not steady, repeat with twice the duration, up to this total (default 10 times "
                 "--warmup plus --duration, at least 30 s)");
  table.integer("--seed", o.seed, std::uint64_t{0}, std::uint64_t{1} << 53, "seed of the random numbers");
  table.text("--fabric", o.fabric, "host", "this machine; the benchmark has no peers");
  table.text("--cores", o.cores, "a list such as 0-3,8",
             "cores of the threads, in this order (default: the allowed cores)");
  table.text("--counter_sources", o.counter_sources, "none, or papi",
             "count the threads' instructions and cycles during the measurement, if this machine allows it");
  table.flag("--require_counters", o.require_counters, "fail if one of --counter_sources cannot count");
  table.text("--out_json_file", o.out_json_file, "a file, or - for standard output", "append the record to this file",
             false);
}

std::vector<int> cores_of(const LocalOptions& options) {
  const std::vector<int> given = parse_cores(options.cores);
  for (const int core : given) check_core(core);
  const std::vector<int> cores = given.empty() ? allowed_cores() : given;
  if (options.threads > cores.size()) {
    fail_usage("--threads {}: there are {} cores for them ({})", options.threads, cores.size(), core_list(cores));
  }
  return cores;
}

Schedule schedule_of(const LocalOptions& options) {
  Schedule schedule;
  schedule.duration = options.duration.value_or(std::chrono::seconds(1));
  schedule.warmup = options.warmup.value_or(std::chrono::milliseconds(200));
  const Picos usual = 10 * (schedule.duration + schedule.warmup);
  schedule.longest = options.longest.value_or(std::max<Picos>(usual, std::chrono::seconds(30)));
  schedule.steady_within = kSteadyWithin;
  return schedule;
}

void check(const LocalOptions& options) {
  if (options.fabric != kHostFabric) {
    fail_usage("--fabric {}: this benchmark has no peers, its fabric is host", options.fabric);
  }
  const Schedule schedule = schedule_of(options);
  if (schedule.longest < schedule.warmup + schedule.duration) {
    fail_usage("--longest is less than --warmup and --duration together");
  }
  for (const std::string& name : parse_counters(options.counter_sources, "--counter_sources", false)) {
    if (name != "papi") fail_usage("--counter_sources {}: without a NIC only papi counts", name);
  }
  cores_of(options);
}

// The threads of a run, from their start to their end.
class Crew {
 public:
  Crew(LocalBenchmark& benchmark, const LocalOptions& options, const std::vector<int>& cores)
      : tallies_(options.threads), ids_(options.threads) {
    for (std::uint32_t i = 0; i < options.threads; ++i) works_.push_back(benchmark.work(i));
    for (std::uint32_t i = 0; i < options.threads; ++i) {
      threads_.emplace_back(cores[i], [this, i](std::stop_token stop) {
        ids_[i].store(::gettid());
        HostNode node;
        MeasuredInterval window(tallies_[i], MeasuredInterval::kNoGoal);
        std::uint64_t ops = 0;
        while (!stop.stop_requested() && !window.see(node, control_.phase.load(std::memory_order_relaxed), ops)) {
          ops += works_[i]->step();
        }
      });
    }
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() { turn(Phase::stop); }

  std::vector<int> ids() const {
    for (const auto& id : ids_) {
      while (id.load() == 0) std::this_thread::yield();
    }
    return {ids_.begin(), ids_.end()};
  }
  void begin_window() {
    for (ThreadTally& tally : tallies_) tally.noted.store(Phase::warmup);
    turn(Phase::measure);
  }
  void turn(Phase phase) { control_.phase.store(phase, std::memory_order_relaxed); }
  // Each thread notes the turn when it has done its piece: pieces take milliseconds.
  void await(Phase phase) const {
    for (const ThreadTally& tally : tallies_) {
      while (tally.noted.load(std::memory_order_acquire) != phase) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }
  void join() {
    turn(Phase::stop);
    for (PinnedThread& thread : threads_) thread.join();
  }

  // After a window.
  WindowRates rates() const {
    WindowRates rates;
    for (const ThreadTally& tally : tallies_) {
      const IntervalBounds& w = tally.window;
      rates += {.ops = w.end_ops - w.begin_ops,
                .mops = to_mops(Ops(w.end_ops - w.begin_ops), w.end - w.begin),
                .first_half_mops = to_mops(Ops(w.half_ops - w.begin_ops), w.half - w.begin),
                .second_half_mops = to_mops(Ops(w.end_ops - w.half_ops), w.end - w.half)};
    }
    return rates;
  }
  std::vector<ThreadReport> reports(const std::vector<int>& cores) const {
    std::vector<ThreadReport> out;
    for (std::size_t i = 0; i < tallies_.size(); ++i) {
      const IntervalBounds& w = tallies_[i].window;
      const std::uint64_t ops = w.end_ops - w.begin_ops;
      out.push_back({.core = cores[i],
                     .rate_mops = to_mops(Ops(ops), w.end - w.begin),
                     .ops = ops,
                     .window_s = to_seconds(w.end - w.begin)});
    }
    return out;
  }

 private:
  RunControl control_;
  std::vector<ThreadTally> tallies_;
  std::vector<std::atomic<int>> ids_;  // 0 until the thread has told its own
  std::vector<std::unique_ptr<LocalWork>> works_;
  std::list<PinnedThread> threads_;
};

void sleep_for(Picos time) {
  std::this_thread::sleep_for(std::chrono::duration_cast<std::chrono::nanoseconds>(time));
}

// One window: what the clock and the CPU time of it were.
WindowUse measure_window(Crew& crew, Collector& collector, Picos duration) {
  collector.begin_window();
  const Picos begin = TscClock::now();
  const CpuSeconds cpu = process_cpu();
  crew.begin_window();
  crew.await(Phase::measure);
  sleep_for(duration / 2);
  crew.turn(Phase::halved);
  crew.await(Phase::halved);
  sleep_for(duration / 2);
  crew.turn(Phase::closed);
  WindowUse use;
  use.time = TscClock::now() - begin;
  use.cpu = process_cpu() - cpu;
  collector.end_window();
  crew.await(Phase::closed);
  return use;
}

NodeReport measure(LocalBenchmark& benchmark, const LocalOptions& options, const std::vector<int>& cores,
                   Collector& collector, std::string& failure) {
  const Schedule schedule = schedule_of(options);
  Steadiness steadiness(schedule);
  collector.measure_background();
  Crew crew(benchmark, options, cores);
  collector.attach(crew.ids());
  const Picos started = TscClock::now();
  sleep_for(schedule.warmup);
  WindowUse use;
  do {
    steadiness.begin(TscClock::now() - started);
    use = measure_window(crew, collector, steadiness.duration());
  } while (steadiness.goes_on(crew.rates(), std::nullopt, true, TscClock::now() - started));
  crew.join();
  failure = steadiness.failure("");
  NodeReport report;
  report.node = "server";
  report.window_s = to_seconds(use.time);
  report.threads = crew.reports(cores);
  const WindowRates rates = crew.rates();
  set_rate(report, rates.mops, rates.ops, std::nullopt);
  report.steadiness = steadiness.report();
  report.cpu = cpu_report(use);
  report.has_peers = false;
  return report;
}

void run_point(LocalBenchmark& benchmark, const LocalOptions& options, Outcome& outcome) {
  const std::vector<int> cores = cores_of(options);
  const auto on_first_core = [&](const std::function<void()>& body) {
    PinnedThread(cores.front(), [&](std::stop_token) { body(); }).join();
  };
  on_first_core([&] { benchmark.prepare(options); });
  const Schedule schedule = schedule_of(options);
  const CounterPlace place{
      .node = "server", .device = "", .ports = {}, .window = schedule.duration, .patience = schedule.longest};
  Collector collector("server",
                      make_sources(parse_counters(options.counter_sources, "--counter_sources", false), place),
                      options.require_counters ? CountersNeeded::all : CountersNeeded::none);
  const NodeReport report = measure(benchmark, options, cores, collector, outcome.failure);
  outcome.result = result_json({.own = report, .clients = std::nullopt});
  Collector::Collected collected = collector.collect(report.rate_mops * 1e6);
  outcome.counters = std::move(collected.reports);
  if (outcome.failure.empty()) outcome.failure = collected.failure;
  outcome.config["duration_s"] = to_seconds(schedule.duration);
  outcome.config["warmup_s"] = to_seconds(schedule.warmup);
  outcome.config["longest_s"] = to_seconds(schedule.longest);
  on_first_core([&] { benchmark.finish(options, report.rate_mops, outcome); });
}

Record make_record(const LocalBenchmark& benchmark, const LocalOptions& options, const OptionTable& table,
                   const std::vector<std::string>& command_line, const Outcome& outcome) {
  Record record;
  record.benchmark = benchmark.describe().name;
  fill_record(record, outcome, table, make_environment(options.fabric, command_line));
  return record;
}

int run_with_arguments(LocalBenchmark& benchmark, int argc, char** argv) {
  const std::vector<std::string> command_line(argv, argv + argc);
  const Description description = benchmark.describe();
  CLI::App app(description.summary);
  LocalOptions options;
  OptionTable table(app);
  add_options(table, options);
  table.group("Options of this benchmark");
  benchmark.options(table);
  bool describe = false;
  app.add_flag("--describe", describe, "print the options as JSON and end")->group("Help");
  app.footer(fmt::format(
      "Example:\n  {} {}\nBYTES: 64, 4k, 2M, 1G (k is 1024). TIME: 500us, 2ms, 3 (seconds). WORD: upper or lower case.",
      description.name, description.example));
  parse_args(app, argc, argv);
  if (describe) {
    print_format(stdout, "{}\n", dump_json(table.describe(description.name, description.summary, description.example)));
    return 0;
  }
  RecordSink sink(options.out_json_file);
  Outcome outcome;
  try {
    check(options);
    benchmark.check(options);
    run_point(benchmark, options, outcome);
  } catch (const std::exception& error) {
    outcome.failure = error.what();
    if (is_fabric(options.fabric)) sink.write(make_record(benchmark, options, table, command_line, outcome));
    throw;
  }
  const Record record = make_record(benchmark, options, table, command_line, outcome);
  sink.write(record);
  if (!outcome.failure.empty()) throw Error(outcome.failure);
  if (!sink.to_stdout()) print_format(stdout, "{}", benchmark.report(record));
  return 0;
}

}  // namespace

int local_main(LocalBenchmark& benchmark, int argc, char** argv) {
  return run_main(benchmark.describe().name.c_str(), argc, argv, [&benchmark](int count, char** arguments) {
    return run_with_arguments(benchmark, count, arguments);
  });
}

}  // namespace verbscope
