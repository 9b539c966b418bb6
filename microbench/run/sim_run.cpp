#include "microbench/run/sim_run.hpp"

#include <algorithm>
#include <deque>
#include <thread>

#include "common/hash.hpp"
#include "common/json.hpp"
#include "common/memory_share.hpp"
#include "common/paths.hpp"
#include "common/terminal.hpp"
#include "drivers_patch/counter_report.hpp"
#include "microbench/run/assumed.hpp"
#include "microbench/run/counted_provider.hpp"
#include "microbench/run/memory_link.hpp"
#include "microbench/run/ports.hpp"
#include "microbench/run/prediction.hpp"
#include "microbench/run/rate_check.hpp"
#include "microbench/run/slow_run.hpp"
#include "nic_sim/profile/profile.hpp"

namespace verbscope {

namespace {

constexpr std::string_view kPrefix = "sim:";
// Schedule::steady_within where packets are lost by chance, and rates stand still until they are missed.
constexpr double kLossySteadyWithin = 0.25;

FabricFacts sim_facts(const Options& options, const Profile& profile) {
  FabricFacts facts;
  facts.simulated = true;
  facts.server_cores = facts.client_cores = static_cast<std::uint32_t>(profile.host.cores);
  const int port = parse_ib_port(options.ib_port);
  facts.ports = port == 0 ? static_cast<std::uint32_t>(profile.wire.ports) : 1;
  facts.max_inline = static_cast<std::uint32_t>(profile.wire.max_inline.value);
  facts.default_clients = static_cast<std::uint32_t>(receivers_needed(profile));
  return facts;
}

// Whether packets can be lost, by chance or for want of room.
bool may_lose(const Profile& profile) {
  return profile.fabric.loss_probability > 0 || profile.fabric.flow_control == FlowControl::tail_drop;
}

// Virtual time in which all that threads have left under way arrives, but for what waits for a retransmission.
constexpr Picos kSettled = std::chrono::microseconds(500);

// Tells one content of a profile from another; how its text is laid out does not count.
std::string profile_checksum(const std::string& name) {
  return fmt::format("{:016x}", text_hash(dump_json(read_json_file(find_config("clusters", name)))));
}

// From so many machines on two threads simulate a cluster where there are processors for them: below, a window is too
// short to be worth two.
constexpr std::size_t kManyNodes = 16;

// On Ethernet a quantum is a third as long as on InfiniBand: a second thread gains little there. The server does about
// as much as all clients together, so one thread of this machine simulates it, and the others the clients. Where all
// machines are `alike`, they are dealt evenly.
SimWork shared_out(std::size_t nodes, bool alike, bool ethernet, std::optional<std::uint32_t> asked) {
  const std::size_t usual = nodes >= kManyNodes && !ethernet && std::thread::hardware_concurrency() > 1 ? 2 : 1;
  const std::size_t threads = std::min<std::size_t>(asked.value_or(usual), nodes);
  SimWork work{.partitions = std::vector<std::size_t>(nodes), .threads = threads};
  for (std::size_t c = 1; c < nodes && threads > 1; ++c)
    work.partitions[c] = alike ? c % threads : 1 + (c - 1) % (threads - 1);
  return work;
}

// The clients of a benchmark that measures the server must not be its limit: unless --uars says otherwise, each of
// their threads has a register of its own. Where all machines are alike, they have the server's.
UarChoice client_uars(const UarChoice& asked, const Traffic& traffic) {
  const bool alike = traffic.both_ways || traffic.qps_per_pair > 0;
  return alike || asked.shared > 0 ? asked : UarChoice{.exclusive = true};
}

// Bytes of this machine that a QP takes, and each place of its queues; measured.
constexpr double kQpBytes = 6e3;
constexpr double kPlaceBytes = 150;

// Tells what the QPs and regions of all machines will take of this one, where that is much (MemoryShare), and refuses
// what it has not; likewise payloads, of which the simulator holds what is under way: at least one list on each QP.
void require_memory(const Benchmark& benchmark, const Plan& plan) {
  double all = 0;
  for (const Side side : {Side::server, Side::client}) {
    const auto own = static_cast<std::uint32_t>(plan_qps(plan.topology, side, 0).size());
    const double nodes = side == Side::server ? 1 : plan.topology.clients;
    const QueueNeeds needs = benchmark.needs(plan.operation, side);
    const double each = kQpBytes + kPlaceBytes * (double{1} * needs.send_depth + needs.recv_depth);
    all += nodes * (own * each + static_cast<double>(benchmark.region(plan.operation, side, own).bytes));
  }
  MemoryShare().add(static_cast<std::size_t>(std::min(all, 1e18)), "the QPs and the memory of the simulated machines");
  const double bytes =
      static_cast<double>(plan.operation.payload) * plan.operation.post_list * plan.topology.server_qps();
  MemoryShare().add(static_cast<std::size_t>(std::min(bytes, 1e18)), "one list of payloads on each QP");
}

// What the person asks of an Ethernet network instead of what the profile says.
void choose_network(const Options& options, Profile& profile) {
  if (const char* option = network_option(options); option != nullptr && !facts(profile.wire.link_type).ethernet) {
    fail_usage("{}: the network of {} is {}, whose ports have credits and no choice", option, options.fabric,
               to_string(profile.wire.link_type));
  }
  profile.fabric.flow_control = options.flow_control.value_or(profile.fabric.flow_control);
  profile.nic.congestion_control = options.congestion_control.value_or(profile.nic.congestion_control);
}

}  // namespace

Outcome run_on_simulator(const Benchmark& benchmark, const Options& options) {
  const std::string name = options.fabric.substr(kPrefix.size());
  const std::filesystem::path file = find_config("clusters", name);
  const Json parameters = read_json_file(file);
  Profile profile = read_profile(parameters, file.string());
  choose_network(options, profile);
  const Traffic traffic = benchmark.traffic();
  Plan plan = make_plan(options, sim_facts(options, profile), traffic);
  require_memory(benchmark, plan);
  if (may_lose(profile)) plan.schedule.steady_within = kLossySteadyWithin;
  const int timeout = static_cast<int>(options.qps.qp_timeout.value_or(kAckTimeout));
  plan.schedule.stuck = std::max(plan.schedule.stuck, kRetransmissions * profile.nic.ack_wait(timeout));
  Outcome outcome;
  outcome.environment["cluster_profile"] = profile_checksum(name);
  outcome.config = plan_json(plan);
  if (facts(profile.wire.link_type).ethernet) {
    outcome.config["flow_control"] = row_of(kFlowControls, profile.fabric.flow_control).name;
    outcome.config["congestion_control"] = row_of(kCongestionControls, profile.nic.congestion_control).name;
  }
  const std::size_t count = 1 + plan.topology.clients;
  SlowRun slow(fmt::format("making the QPs and the memory of {} machines", count));
  SimCluster cluster(
      profile, static_cast<int>(count), options.seed,
      shared_out(count, traffic.qps_per_pair > 0, facts(profile.wire.link_type).ethernet, options.sim_threads));
  std::deque<CountedProvider> counted;  // one a node where --counter_sources asks for it
  std::deque<NodeRun> nodes;
  for (std::size_t n = 0; n < count; ++n) {
    Provider& own = cluster.provider(static_cast<int>(n));
    if (asks_for_driver(options.counter_sources)) counted.emplace_back(own, driver::facts_of(profile.wire), false);
    Provider& provider = counted.empty() ? own : counted.back();
    const DevicePorts ports = choose_ports(provider, options.ib_dev, parse_ib_port(options.ib_port));
    const UarChoice uars = parse_uars(options.uars);
    const NodePlace place{&provider,   ports.device, ports.ports, options.gid_index,
                          options.mtu, false,        false,       n == 0 ? uars : client_uars(uars, traffic),
                          options.qps};
    const Side side = n == 0 ? Side::server : Side::client;
    nodes.emplace_back(benchmark, plan, side, static_cast<std::uint32_t>(n == 0 ? 0 : n - 1), place);
  }
  MemoryLink link(cluster, nodes, plan.schedule, benchmark.operation_count(), slow);
  PhaseMachine machine(nodes.front(), link);
  machine.run();
  cluster.run();
  const PointReports result = make_result(link.collect(outcome.failure), plan, traffic.counted, outcome.failure);
  outcome.result = result_json(result);
  for (std::size_t n = 0; n < count; ++n) outcome.counters.push_back(link.window().counters(n, profile));
  if (!counted.empty()) cluster.settle(kSettled);
  for (std::size_t n = 0; n < counted.size(); ++n) {
    outcome.counters.push_back(link.window().driver_counters(n, counted[n]));
  }
  outcome.environment["assumed"] =
      assumed_parameters(parameters, outcome.counters, static_cast<double>(result.own.window_ops));
  outcome.config.update(nodes.front().settled());
  ClusterWire wire = profile.wire;
  wire.mtu = Bytes(nodes.front().mtu());  // the MTU of the paths in use, as on a device
  const bool failed = !outcome.failure.empty();
  check_against_counters(benchmark.operation_count(), plan.schedule, benchmark.moves_payloads(), outcome);
  if (!failed && !outcome.failure.empty()) outcome.failure += link.window().disturbances();
  predict_point(benchmark, plan, wire, result.own, outcome);
  benchmark.finish(outcome);
  check_against_bounds(benchmark.bounded_rate(), outcome);
  return outcome;
}

}  // namespace verbscope
