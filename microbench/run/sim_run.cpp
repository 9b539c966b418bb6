#include "microbench/run/sim_run.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <thread>

#include "common/error.hpp"
#include "microbench/run/ports.hpp"
#include "microbench/run/prediction.hpp"
#include "microbench/run/role.hpp"
#include "microbench/run/sim_usage.hpp"
#include "nic_sim/cluster.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr Picos kTick = 5us;     // virtual: how often the conductor looks
constexpr Picos kQuiet = 100us;  // virtual: when nothing has arrived for so long, what is missing is lost
constexpr Picos kStuck = 200ms;  // virtual: when nothing has completed for so long, over a retransmission, nothing will
constexpr std::string_view kPrefix = "sim:";

struct NodeCounts {
  PcieCounts pcie;
  NicCounts nic;
  UsageTimes usage;
  Picos busy{0};  // its threads
  std::uint64_t armed = 0;
};

// Turns the phases and decides when all is over, as actions of the simulated cluster.
class SimConductor {
 public:
  SimConductor(SimCluster& cluster, std::deque<Role>& roles, const Schedule& schedule)
      : cluster_(cluster), roles_(roles), schedule_(schedule) {
    for (std::size_t node = 0; node < roles_.size(); ++node) start_threads(static_cast<int>(node));
    if (schedule_.warmup == Picos(0)) {
      begin_measure();
    } else {
      cluster_.at(schedule_.warmup, [this] { begin_measure(); });
    }
  }

  Picos window() const { return end_ - begin_; }
  const std::string& failure() const { return failure_; }
  std::uint64_t armings(std::size_t node) const { return counts_at_end_[node].armed - counts_at_begin_[node].armed; }
  Picos busy(std::size_t node) const { return counts_at_end_[node].busy - counts_at_begin_[node].busy; }
  const NodeCounts& at_begin(std::size_t node) const { return counts_at_begin_[node]; }
  const NodeCounts& at_end(std::size_t node) const { return counts_at_end_[node]; }

 private:
  void start_threads(int node) {
    Role& role = roles_[static_cast<std::size_t>(node)];
    const RunControl& control = node == 0 ? server_ : clients_;
    for (std::size_t t = 0; t < role.threads(); ++t) {
      cluster_.add_thread(node, static_cast<int>(t), [&role, &control, t](SimNode& sim_node) {
        role.workload(t).run(sim_node, control, role.tally(t));
        role.tally(t).ended.store(true, std::memory_order_release);
      });
    }
  }

  void again(void (SimConductor::*step)()) {
    cluster_.at(cluster_.now() + kTick, [this, step] { (this->*step)(); });
  }

  std::vector<NodeCounts> counts() const {
    std::vector<NodeCounts> all;
    for (std::size_t node = 0; node < roles_.size(); ++node) {
      all.push_back({cluster_.pcie_counts(static_cast<int>(node)), cluster_.nic_counts(static_cast<int>(node)),
                     cluster_.usage_times(static_cast<int>(node)), cluster_.busy_time(static_cast<int>(node)),
                     roles_[node].armed()});
    }
    return all;
  }

  void begin_measure() {
    begin_ = cluster_.now();
    counts_at_begin_ = counts();
    server_.phase = clients_.phase = Phase::measure;
    if (schedule_.iters) {
      again(&SimConductor::wait_for_goal);
    } else {
      cluster_.at(begin_ + schedule_.duration, [this] { end_measure(); });
    }
  }

  void wait_for_goal() {
    if (windows_closed() || failed() || stalled(completed(), kStuck)) {
      end_measure();
    } else {
      again(&SimConductor::wait_for_goal);
    }
  }

  // Receivers see their window's end in traffic that still flows, so those that send to them are stopped afterwards.
  void end_measure() {
    end_ = cluster_.now();
    counts_at_end_ = counts();
    const bool server_counts = roles_.front().counted();
    (server_counts ? server_ : clients_).phase = Phase::stop;
    if (roles_[server_counts ? 0 : 1].sends()) server_.phase = clients_.phase = Phase::stop;
    moved_at_ = end_;
    again(&SimConductor::wait_for_windows);
  }

  void wait_for_windows() {
    if (!windows_closed() && !failed() && !stalled(completed(), kStuck)) {
      return again(&SimConductor::wait_for_windows);
    }
    server_.phase = clients_.phase = Phase::stop;
    moved_at_ = cluster_.now();
    drain();
  }

  void drain() {
    std::uint64_t expected = 0, received = 0;
    bool sending = false;
    for (const Role& role : roles_) {
      sending = sending || !role.active_ended();
      received += role.received();
    }
    if (!sending) expected = messages_sent();
    if (failed() || stalled(completed() + received, sending ? kStuck : kQuiet) || (!sending && received >= expected)) {
      server_.quit = clients_.quit = true;
    } else {
      again(&SimConductor::drain);
    }
  }

  // Of the side whose windows make the rate.
  bool windows_closed() const {
    return std::ranges::all_of(roles_, [](const Role& role) { return !role.counted() || role.windows_closed(); });
  }
  std::uint64_t completed() const {
    std::uint64_t sum = 0;
    for (const Role& role : roles_) sum += role.completed();
    return sum;
  }

  std::uint64_t messages_sent() const {
    std::uint64_t sent = 0;
    for (std::size_t c = 1; c < roles_.size(); ++c) {
      sent += roles_.front().sent_to(static_cast<std::uint32_t>(c - 1)) + roles_[c].sent_to(0);
    }
    return sent;
  }

  bool failed() {
    for (const Role& role : roles_) {
      if (failure_.empty()) failure_ = role.failure();
    }
    return !failure_.empty();
  }

  // Whether `progress` has not changed for longer than `limit`.
  bool stalled(std::uint64_t progress, Picos limit) {
    if (progress != seen_) {
      seen_ = progress;
      moved_at_ = cluster_.now();
    }
    return cluster_.now() - moved_at_ > limit;
  }

  SimCluster& cluster_;
  std::deque<Role>& roles_;
  const Schedule& schedule_;
  RunControl server_, clients_;
  std::vector<NodeCounts> counts_at_begin_, counts_at_end_;
  Picos begin_{0}, end_{0}, moved_at_{0};
  std::uint64_t seen_ = 0;
  std::string failure_;
};

CounterReport counter_report(const std::string& node, Picos window, const NodeCounts& begin, const NodeCounts& end,
                             const Profile& profile) {
  CounterReport report{.source = "sim", .node = node, .blind = "", .window_s = to_seconds(window), .events = {}};
  std::vector<std::uint64_t> before;
  PcieCounts::each(begin.pcie, [&](const char*, std::uint64_t value) { before.push_back(value); });
  report.events = end.pcie;
  std::size_t i = 0;
  PcieCounts::each(report.events, [&](const char*, std::uint64_t& value) { value -= before[i++]; });
  before.clear();
  NicCounts::each(begin.nic, [&](const char*, std::uint64_t value) { before.push_back(value); });
  i = 0;
  NicCounts::each(end.nic, [&](const char* name, std::uint64_t value) { report.extra[name] = value - before[i++]; });
  report.extra.update(usage_json(begin.usage, end.usage, profile));
  return report;
}

FabricFacts sim_facts(const Options& options, const Profile& profile) {
  FabricFacts facts;
  facts.simulated = true;
  facts.server_cores = facts.client_cores = static_cast<std::uint32_t>(profile.host.cores);
  const int port = parse_ib_port(options.ib_port);
  facts.ports = port == 0 ? static_cast<std::uint32_t>(profile.wire.ports) : 1;
  facts.default_clients = static_cast<std::uint32_t>(receivers_needed(profile));
  return facts;
}

std::vector<int> first_cores(std::size_t count) {
  std::vector<int> cores(count);
  std::iota(cores.begin(), cores.end(), 0);
  return cores;
}

void connect_all(std::deque<Role>& roles) {
  std::vector<Json> clients;
  for (std::size_t c = 1; c < roles.size(); ++c) clients.push_back(roles[c].endpoints());
  const Json server = roles.front().endpoints();
  roles.front().connect(clients);
  for (std::size_t c = 1; c < roles.size(); ++c) roles[c].connect({server});
}

void collect(std::deque<Role>& roles, const Plan& plan, const SimConductor& conductor, const Profile& profile,
             Outcome& outcome) {
  Role& server = roles.front();
  const Picos window = conductor.window();
  outcome.failure = conductor.failure();
  outcome.result = role_result(server, window, first_cores(server.threads()), outcome.failure);
  outcome.result["cpu"] = cpu_json({to_seconds(conductor.busy(0)), 0}, window);
  if (plan.operation.events) outcome.result["cq_armings"] = conductor.armings(0);
  Delivery total;
  Json clients = Json::array();
  Delivery inbound = server.delivery(0);
  for (std::size_t c = 1; c < roles.size(); ++c) {
    Role& client = roles[c];
    const auto index = static_cast<std::uint32_t>(c - 1);
    const Delivery outbound = client.delivery(server.sent_to(index));
    inbound.expected += client.sent_to(0);
    Json result = role_result(client, window, first_cores(client.threads()), outcome.failure);
    result.update(delivery_json(outbound, plan.operation.validate));
    result["cpu"] = cpu_json({to_seconds(conductor.busy(c)), 0}, window);
    if (plan.operation.events) result["cq_armings"] = conductor.armings(c);
    clients.push_back(Json{{"node", client.name()}, {"result", result}});
    total += outbound;
  }
  total += inbound;
  outcome.result.update(delivery_json(total, plan.operation.validate));
  outcome.result["clients"] = clients;
  if (!server.counted()) take_rate_of_clients(outcome.result, plan.schedule.iters.has_value());
  judge_delivery(total, plan.operation, outcome.failure);
  for (std::size_t node = 0; node < roles.size(); ++node) {
    outcome.counters.push_back(
        counter_report(roles[node].name(), window, conductor.at_begin(node), conductor.at_end(node), profile));
  }
}

// From so many machines on two threads simulate a cluster where there are processors for them: below, a window is too
// short to be worth two.
constexpr std::size_t kManyNodes = 16;

// The server does about as much as all clients together, so one thread of this machine simulates it, and the others
// the clients.
SimWork shared_out(std::size_t nodes, std::optional<std::uint32_t> asked) {
  const std::size_t usual = nodes >= kManyNodes && std::thread::hardware_concurrency() > 1 ? 2 : 1;
  const std::size_t threads = std::min<std::size_t>(asked.value_or(usual), nodes);
  SimWork work{.partitions = std::vector<std::size_t>(nodes), .threads = threads};
  for (std::size_t c = 1; c < nodes && threads > 1; ++c) work.partitions[c] = 1 + (c - 1) % (threads - 1);
  return work;
}

}  // namespace

Outcome run_on_simulator(const Benchmark& benchmark, const Options& options) {
  const Profile profile = load_profile(options.fabric.substr(kPrefix.size()));
  const Plan plan = make_plan(options, sim_facts(options, profile), benchmark.traffic());
  Outcome outcome;
  outcome.config = plan_json(plan);
  const int nodes = 1 + static_cast<int>(plan.topology.clients);
  SimCluster cluster(profile, nodes, options.seed, shared_out(static_cast<std::size_t>(nodes), options.sim_threads));
  std::deque<Role> roles;
  for (int node = 0; node < nodes; ++node) {
    Provider& provider = cluster.provider(node);
    const DevicePorts ports = choose_ports(provider, options.ib_dev, parse_ib_port(options.ib_port));
    const RolePlace place{&provider, ports.device, ports.ports, options.gid_index, options.mtu, false};
    const Side side = node == 0 ? Side::server : Side::client;
    roles.emplace_back(benchmark, plan, side, static_cast<std::uint32_t>(node == 0 ? 0 : node - 1), place);
  }
  connect_all(roles);
  SimConductor conductor(cluster, roles, plan.schedule);
  cluster.run();
  collect(roles, plan, conductor, profile, outcome);
  outcome.config["mtu"] = roles.front().mtu();
  ClusterWire wire = profile.wire;
  wire.mtu = Bytes(roles.front().mtu());  // of the paths in use, as on a device
  outcome.prediction =
      predict_json(benchmark, plan, wire, static_cast<int>(plan.topology.ports), outcome.result, outcome.no_prediction);
  benchmark.finish(outcome);
  return outcome;
}

}  // namespace verbscope
