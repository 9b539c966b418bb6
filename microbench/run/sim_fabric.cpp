#include "microbench/run/sim_fabric.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "common/memory_share.hpp"
#include "drivers_patch/counter_report.hpp"
#include "microbench/run/prediction.hpp"
#include "microbench/run/rate_check.hpp"

namespace verbscope {

namespace {

// Schedule::steady_within if packets are lost: the rate is 0 until a lost packet is detected.
constexpr double kLossySteadyWithin = 0.25;

FabricFacts sim_facts(const Options& options, const Profile& profile) {
  FabricFacts facts;
  facts.simulated = true;
  facts.server_cores = facts.client_cores = static_cast<std::uint32_t>(profile.host.cores);
  facts.threads_per_core = static_cast<std::uint32_t>(profile.host.threads_per_core);
  facts.ports = selected_port(options) == 0 ? static_cast<std::uint32_t>(profile.wire.ports) : 1;
  facts.max_inline = static_cast<std::uint32_t>(profile.wire.max_inline.value);
  facts.default_clients = static_cast<std::uint32_t>(receivers_needed(profile));
  return facts;
}

// Packets can be lost, by chance or because a buffer is full.
bool may_lose(const Profile& profile) {
  return profile.fabric.loss_probability > 0 || profile.fabric.flow_control == FlowControl::tail_drop;
}

// Virtual time in which all outstanding packets arrive, except those that wait for a retransmission.
constexpr Picos kSettled = std::chrono::microseconds(500);

// Clusters of at least this many machines are simulated by two threads, if this machine has two processors. For smaller
// ones the work between two barriers is too short to gain.
constexpr std::size_t kManyNodes = 16;

// On Ethernet a quantum is a third as long as on InfiniBand: a second thread gains little there. The server does about
// as much as all clients together, so one thread of this machine simulates it, and the others the clients. Machines
// that are all `alike` are dealt evenly.
SimWork distribute(std::size_t nodes, bool alike, bool ethernet, std::optional<std::uint32_t> asked) {
  const std::size_t usual = nodes >= kManyNodes && !ethernet && std::thread::hardware_concurrency() > 1 ? 2 : 1;
  const std::size_t threads = std::min<std::size_t>(asked.value_or(usual), nodes);
  SimWork work{.partitions = std::vector<std::size_t>(nodes), .threads = threads};
  for (std::size_t c = 1; c < nodes && threads > 1; ++c)
    work.partitions[c] = alike ? c % threads : 1 + (c - 1) % (threads - 1);
  return work;
}

// Clients must not limit a benchmark that measures the server: each of their threads has its own doorbell register,
// unless --uars gives a number. If all machines are alike, the clients have the server's choice.
UarChoice client_uars(const UarChoice& asked, const Plan& plan) {
  const bool alike = plan.operation.both_ways || plan.topology.qps_per_pair > 0;
  return alike || asked.shared > 0 ? asked : UarChoice{.exclusive = true};
}

// Memory of this machine per simulated QP, and per entry of its queues, in bytes; measured.
constexpr double kQpBytes = 6e3;
constexpr double kPlaceBytes = 150;

// Warns if the QPs and regions of all machines take much memory of this one, and refuses more than it has
// (MemoryShare); likewise for outstanding payloads: the simulator holds at least one list for each QP.
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

// Applies the options for the network to the profile.
void choose_network(const Options& options, Profile& profile) {
  if (const char* option = network_option(options); option != nullptr && !facts(profile.wire.link_type).ethernet) {
    fail_usage("{}: only on Ethernet, the network of {} is {}", option, options.fabric,
               to_string(profile.wire.link_type));
  }
  profile.fabric.flow_control = options.flow_control.value_or(profile.fabric.flow_control);
  profile.nic.congestion_control = options.congestion_control.value_or(profile.nic.congestion_control);
  profile.fabric.loss_probability = options.loss.value_or(profile.fabric.loss_probability);
}

}  // namespace

SimFabric::SimFabric(Benchmark& benchmark, const Options& options)
    : Fabric(benchmark), options_(options), source_(options.fabric), profile_(source_.profile) {
  choose_network(options, profile_);
}

Plan SimFabric::make_plan() {
  Plan plan = verbscope::make_plan(options_, sim_facts(options_, profile_), benchmark().draft());
  require_memory(benchmark(), plan);
  if (may_lose(profile_)) plan.schedule.steady_within = kLossySteadyWithin;
  const int timeout = static_cast<int>(options_.qps.qp_timeout.value_or(kAckTimeout));
  plan.schedule.stuck = std::max(plan.schedule.stuck, kRetransmissions * profile_.nic.ack_wait(timeout));
  return plan;
}

NodePlace SimFabric::place_of(std::size_t node, const Plan& plan) {
  Provider& provider = cluster_->provider(static_cast<int>(node));
  if (asks_for_driver(options_.counter_sources)) {
    counters_.emplace_back(provider, driver::facts_of(profile_.wire), false);
  }
  const DevicePorts ports = choose_ports(provider, options_);
  const UarChoice uars = parse_uars(options_.uars);
  return {&provider,    ports.device, ports.ports, options_.gid_index,
          options_.mtu, false,        false,       node == 0 ? uars : client_uars(uars, plan),
          options_.qps};
}

Link& SimFabric::open(const Plan& plan, Outcome& outcome) {
  const bool ethernet = facts(profile_.wire.link_type).ethernet;
  outcome.environment["cluster_profile"] = source_.checksum;
  if (ethernet) {
    outcome.config["flow_control"] = row_of(kFlowControls, profile_.fabric.flow_control).name;
    outcome.config["congestion_control"] = row_of(kCongestionControls, profile_.nic.congestion_control).name;
  }
  const std::size_t machines = plan.topology.machines();
  notice_.emplace(fmt::format("creating the QPs and the memory of {} machines", machines));
  cluster_.emplace(profile_, static_cast<int>(machines), options_.seed,
                   distribute(machines, plan.topology.qps_per_pair > 0, ethernet, options_.sim_threads));
  for (std::size_t n = 0; n < machines; ++n) {
    const Side side = n == 0 ? Side::server : Side::client;
    nodes_.emplace_back(benchmark(), plan, side, static_cast<std::uint32_t>(n == 0 ? 0 : n - 1), place_of(n, plan));
  }
  return link_.emplace(*cluster_, nodes_, plan.schedule, benchmark().operation_count(), *notice_);
}

void SimFabric::complete(const Plan& plan, const NodeReport& own, Outcome& outcome) {
  const SimInterval& interval = link_->interval();
  for (std::size_t n = 0; n < nodes_.size(); ++n) outcome.counters.push_back(interval.counters(n, profile_));
  if (!counters_.empty()) cluster_->settle(kSettled);
  for (std::size_t n = 0; n < counters_.size(); ++n) {
    outcome.counters.push_back(interval.driver_counters(n, counters_[n]));
  }
  outcome.environment["assumed"] = source_.assumed(outcome.counters, static_cast<double>(own.window_ops));
  outcome.config.update(nodes_.front().settled());
  const bool failed = !outcome.failure.empty();
  check_against_counters(benchmark().operation_count(), plan.schedule, benchmark().moves_payloads(), outcome);
  if (!failed && !outcome.failure.empty()) outcome.failure += interval.disturbances();
  ClusterWire wire = profile_.wire;
  wire.mtu = Bytes(nodes_.front().mtu());  // the MTU of the paths in use, as on a device
  predict_point(benchmark(), plan, wire, own, outcome);
}

}  // namespace verbscope
