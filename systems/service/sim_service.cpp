#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "common/record.hpp"
#include "microbench/run/sim_interval.hpp"
#include "microbench/run/sim_profile.hpp"
#include "nic_sim/cluster.hpp"
#include "systems/service/runs.hpp"
#include "systems/service/sim_links.hpp"

namespace verbscope {

namespace {

constexpr Picos kSlice = std::chrono::microseconds(100);  // of a slow machine

SimProfile profile_of(const ServiceOptions& options) {
  SimProfile source(options.fabric);
  source.profile.fabric.loss_probability = options.loss.value_or(source.profile.fabric.loss_probability);
  return source;
}

ServiceOptions with_names(ServiceOptions options, std::uint32_t servers) {
  for (std::uint32_t n = 0; n < servers; ++n) options.servers.push_back(fmt::format("node{}", n));
  return options;
}

// The names of the machines in the record, as in those of benchmarks: server, server1, ..., client0, ...
std::vector<std::string> record_names(const ServiceOptions& options) {
  std::vector<std::string> names{"server"};
  for (std::size_t n = 1; n < options.servers.size(); ++n) names.push_back(fmt::format("server{}", n));
  for (std::size_t n = 0; n < options.clients; ++n) names.push_back(fmt::format("client{}", n));
  return names;
}

// One run of a service: its machines, their processes, and the faults of its script.
class SimRun final : public SimFaults {
 public:
  SimRun(Service& service, const ServiceOptions& options)
      : service_(service),
        options_(with_names(options, service.servers())),
        source_(profile_of(options_)),
        cluster_(source_.profile, static_cast<int>(options_.servers.size() + options_.clients), options_.seed),
        machines_(static_cast<std::size_t>(cluster_.nodes())),
        links_(cluster_, options_.servers, options_.timeout),
        counters_(cluster_, record_names(options_), [](std::size_t) { return 0; }),
        interval_([this] { counters_.begin(); }, [this] { counters_.end(); }),
        random_(mix(options_.seed)) {
    for (std::uint32_t machine = 0; machine < machines_.size(); ++machine) start(machine);
  }
  // The threads of a run that failed have not ended.
  ~SimRun() override {
    for (std::uint32_t machine = 0; machine < machines_.size(); ++machine) end(machine);
  }
  SimRun(const SimRun&) = delete;
  SimRun& operator=(const SimRun&) = delete;

  void run() {
    counters_.begin();
    cluster_.expect_threads(true);
    cluster_.run([this] {
      service_.script(*this);
      script_done_ = true;
      cluster_.expect_threads(false);
      stop_if_done();
    });
  }

  // After the run.
  Outcome outcome() {
    counters_.close();
    Outcome outcome;
    for (std::size_t n = 0; n < machines_.size(); ++n) {
      outcome.counters.push_back(counters_.counters(n, source_.profile));
    }
    outcome.result["window_s"] = outcome.counters.front().window_s;
    outcome.result.update(service_.result());
    outcome.environment["cluster_profile"] = source_.checksum;
    outcome.environment["assumed"] = source_.assumed(outcome.counters, outcome.result.value("window_ops", 0.0));
    return outcome;
  }

  Picos now() const override { return cluster_.now(); }
  void wait_until(Picos when) override { cluster_.wait_until(when); }
  std::uint64_t random() override { return mix(random_ += kMixStep); }
  bool runs(std::uint32_t machine) const override { return at(machine).process != nullptr; }

  void kill(std::uint32_t machine) override {
    if (!runs(machine)) fail("kill {}: node{} does not run", machine, machine);
    end(machine);
    stop_if_done();
  }
  void restart(std::uint32_t machine) override {
    if (runs(machine)) fail("restart {}: node{} runs", machine, machine);
    start(machine);
  }
  void cut(std::uint32_t machine) override {
    at(machine);
    cluster_.cut(static_cast<int>(machine));
    links_.cut(machine);
  }
  void join(std::uint32_t machine) override {
    at(machine);
    cluster_.join(static_cast<int>(machine));
    links_.join(machine);
  }
  void pause(std::uint32_t machine, Picos time) override {
    at(machine);
    cluster_.hold_threads(static_cast<int>(machine), time);
  }
  void slow(std::uint32_t machine, double factor) override {
    if (!(factor >= 1)) fail("slow {}: factor {:g}, expected 1 or more", machine, factor);
    const double before = std::exchange(at(machine).slowness, factor);
    if (before == 1) take_slice(machine);
  }

 private:
  struct Process {
    Process(Provider& provider, const ServiceOptions& options)
        : device(provider, options), management(options.threads), running(options.threads) {}
    ServiceDevice device;
    Management management;
    std::uint32_t running;  // threads with endpoints
  };
  struct Machine {
    std::unique_ptr<Process> process;  // null: it was killed
    // Of all its processes, because the simulator watches memory that threads have declared until the run ends.
    std::deque<ServiceWorkers> workers;
    std::uint32_t starts = 0;
    std::uint32_t calling = 0;  // threads of a client that are not done
    double slowness = 1;
  };

  Machine& at(std::uint32_t machine) {
    if (machine >= machines_.size()) fail("machine {}: the cluster has {}", machine, machines_.size());
    return machines_[machine];
  }
  const Machine& at(std::uint32_t machine) const { return const_cast<SimRun*>(this)->at(machine); }
  bool is_client(std::uint32_t machine) const { return machine >= options_.servers.size(); }

  void start(std::uint32_t number) {
    Machine& machine = machines_[number];
    machine.process = std::make_unique<Process>(cluster_.provider(static_cast<int>(number)), options_);
    links_.begin(number, machine.process->management);
    if (stopping_) machine.process->management.stop();
    machine.calling = is_client(number) ? options_.threads : 0;
    const std::uint64_t seed = mix(mix(mix(options_.seed) ^ number) ^ machine.starts++);
    Process& process = *machine.process;
    const ServiceWorkers* const workers =
        options_.workers == 0 || is_client(number) ? nullptr : &machine.workers.emplace_back(options_);
    for (std::uint32_t t = 0; t < options_.threads; ++t) {
      const ServicePlace place{.device = process.device,
                               .options = options_,
                               .management = process.management,
                               .interval = interval_,
                               .workers = workers,
                               .machine = number,
                               .thread = t,
                               .random = mix(seed ^ t)};
      cluster_.add_thread(static_cast<int>(number), static_cast<int>(t), [this, place](SimNode& node) {
        const auto thread = std::make_unique<ServiceThreadOn<SimNode>>(place, node);
        if (!is_client(place.machine)) return serve(*thread);
        service_.call(*thread);
        thread->finish();
        --machines_[place.machine].calling;
        stop_if_done();
      });
    }
    for (std::uint32_t w = 0; workers != nullptr && w < options_.workers; ++w) {
      cluster_.add_thread(static_cast<int>(number), static_cast<int>(options_.threads + w),
                          [workers, &process, w](SimNode& node) {
                            workers->run(node, w, [&process] { return process.running == 0; });
                          });
    }
  }
  void serve(ServiceThread& thread) {
    service_.serve(thread);
    --machines_[thread.machine()].process->running;
  }

  // Destroys what is on the stacks of the threads, and then what the threads share.
  void end(std::uint32_t machine) {
    if (!runs(machine)) return;
    links_.end(machine);
    cluster_.end_threads(static_cast<int>(machine));
    machines_[machine].process.reset();
  }

  // When all clients are done, the others are to end. A killed client may be started again while the script runs.
  void stop_if_done() {
    for (std::uint32_t machine = 0; machine < machines_.size(); ++machine) {
      if (!is_client(machine)) continue;
      if (runs(machine) ? machines_[machine].calling > 0 : !script_done_) return;
    }
    stopping_ = true;
    cluster_.expect_threads(false);
    for (const Machine& machine : machines_) {
      if (machine.process != nullptr) machine.process->management.stop();
    }
  }

  void take_slice(std::uint32_t machine) {
    const double slowness = machines_[machine].slowness;
    if (slowness == 1) return;
    pause(machine, Picos(std::llround(static_cast<double>(kSlice.count()) * (1 - 1 / slowness))));
    cluster_.at(now() + kSlice, [this, machine] { take_slice(machine); });
  }

  Service& service_;
  const ServiceOptions options_;
  const SimProfile source_;
  SimCluster cluster_;
  std::vector<Machine> machines_;
  SimLinks links_;
  SimInterval counters_;
  ServiceInterval interval_;
  std::uint64_t random_;
  bool script_done_ = false;
  bool stopping_ = false;
};

}  // namespace

Outcome run_simulated(Service& service, const ServiceOptions& options) {
  SimRun run(service, options);
  run.run();
  return run.outcome();
}

}  // namespace verbscope
