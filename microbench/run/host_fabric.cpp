#include "microbench/run/host_fabric.hpp"

#include <array>

#include "common/error.hpp"
#include "common/record.hpp"
#include "counters/sources.hpp"
#include "machine/threads.hpp"
#include "microbench/run/prediction.hpp"
#include "microbench/run/rate_check.hpp"

namespace verbscope {

namespace {

// Options that may differ between the two sides; all others must agree.
constexpr std::array kLocalOptions = {
    "fabric",     "clients",       "client_threads", "ib_dev",   "ib_port",         "gid_index",
    "pkey_index", "port",          "timeout_s",      "cores",    "counter_sources", "require_counters",
    "limit_bw",   "limit_msgrate", "report_gbits",   "CPU_freq", "noPeak",          "any_build"};

std::size_t usable_cores(const Options& options) {
  const std::vector<int> named = parse_cores(options.cores);
  for (const int core : named) check_core(core);
  return named.empty() ? allowed_cores().size() : named.size();
}

// The largest payload that a QP of these options inlines on the first port.
std::uint32_t offered_inline(Provider& provider, const Options& options, const DevicePorts& ports) {
  const Device device(provider, fmt::format("{}:{}", ports.device, ports.ports.front()));
  const Pd pd(device);
  const Cq cq(device, 1, nullptr);
  QpOptions qp;
  qp.transport = options.connection;
  qp.send_cq = qp.recv_cq = cq.get();
  qp.send_depth = static_cast<int>(options.tx_depth);
  return static_cast<std::uint32_t>(largest_inline(pd, qp));
}

bool has_peers(const Options& options) {
  return options.fabric == "verbs";
}

// The sources of --counter_sources for `node` on these ports.
Collector make_collector(const NodeRun& node, const Options& options, const Schedule& schedule,
                         const DevicePorts& ports) {
  const bool device = options.fabric == "verbs";
  const CounterPlace place{.node = node.name(),
                           .device = device ? ports.device : "",
                           .ports = ports.ports,
                           // Unknown if a number of operations ends the interval.
                           .window = schedule.iters ? Picos(0) : schedule.duration,
                           // A tool must end before the peer's timeout.
                           .patience = schedule.timeout * 4 / 5};
  // Without peers the default names papi, which few machines allow.
  const std::string& named = options.fabric == kHostFabric ? "auto" : options.counter_sources;
  return {node.name(), make_sources(parse_counters(options.counter_sources, "--counter_sources", device), place),
          counters_needed(named, options.require_counters, node.name())};
}

}  // namespace

Terms make_terms(const Benchmark& benchmark, const Options& options, const OptionTable& table) {
  const BuildInfo build = build_info();
  Terms terms{benchmark.describe().name, build.version, build.git_revision, options.any_build, table.values()};
  for (const char* name : kLocalOptions) terms.parameters.erase(name);
  const Topology topology = benchmark.draft().topology;
  if (topology.client_qps || topology.any_thread) {
    terms.parameters["client_threads"] = table.values().at("client_threads");
  }
  return terms;
}

HostFabric::HostFabric(Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider)
    : Fabric(benchmark),
      options_(options),
      table_(table),
      provider_(provider),
      ports_(choose_ports(provider, options)),
      facts_(facts()) {}

FabricFacts HostFabric::facts() const {
  FabricFacts facts;
  if (benchmark().draft().operation.inline_up_to > 0) facts.max_inline = offered_inline(provider_, options_, ports_);
  facts.local = benchmark().local();
  facts.alone = !has_peers(options_);
  facts.server_cores = facts.client_cores = static_cast<std::uint32_t>(usable_cores(options_));
  facts.ports = static_cast<std::uint32_t>(ports_.ports.size());
  return facts;
}

Plan HostFabric::plan_for(const Options& options) const {
  return verbscope::make_plan(options, facts_, benchmark().draft());
}

NodePlace HostFabric::place() const {
  return {&provider_,   ports_.device, ports_.ports,         options_.gid_index,
          options_.mtu, true,          !has_peers(options_), parse_uars(options_.uars),
          options_.qps};
}

void HostFabric::check_client(const Plan& plan) const {
  const NodePlace here = place();
  const NodePart part(benchmark(), plan, Side::client, 0, here);
  const NodePorts ports(part, here);
}

void HostFabric::make_node(const Plan& plan, Side side, std::uint32_t client) {
  node_.emplace(benchmark(), plan, side, client, place());
  cores_.emplace(parse_cores(options_.cores), node_->threads().size());
}

HostSide HostFabric::host_side(const Plan& plan) {
  collector_.emplace(make_collector(*node_, options_, plan.schedule, ports_));
  return {*node_, plan, peers_, *cores_, *collector_};
}

void HostFabric::add_counters(const NodeReport& own, Outcome& outcome) {
  Collector::Collected collected = collector_->collect(own.rate_mops * 1e6);
  outcome.counters = std::move(collected.reports);
  if (outcome.failure.empty()) outcome.failure = collected.failure;
}

void HostFabric::send_failure(const std::string& reason) {
  for (Channel& peer : peers_) peer.send_failure(reason);
}

void ServerFabric::meet_clients(const Plan& plan) {
  ExchangeServer exchange(static_cast<int>(options().port), terms(), exchange_secret(options().secret),
                          options().listen);
  exchange.announce();
  peers_ = exchange.accept(static_cast<int>(plan.topology.clients), plan.schedule.timeout);
}

Link& ServerFabric::open(const Plan& plan, Outcome&) {
  make_node(plan, Side::server, 0);
  benchmark().prepare(plan, cores().threads().front());
  if (has_peers(options())) meet_clients(plan);
  link_ = make_server_link(host_side(plan));
  return *link_;
}

void ServerFabric::complete(const Plan& plan, const NodeReport& own, Outcome& outcome) {
  add_counters(own, outcome);
  if (plan.topology.local) return;
  NodeRun& node = own_node();
  outcome.environment["server"] = node.describe();
  outcome.config.update(node.settled());
  check_against_ports(plan, node.mtu(), outcome);
  predict_for_device(benchmark(), plan, node, own, outcome);
}

Plan ClientFabric::make_plan() {
  // Checks before it contacts the server. Only the server knows the number of clients.
  const Plan plan = plan_for(options());
  check_client(plan);
  peers_.push_back(connect_exchange(options().host, static_cast<int>(options().port), terms(),
                                    exchange_secret(options().secret), plan.schedule.timeout));
  Options agreed = options();
  agreed.clients = static_cast<std::uint32_t>(peers_.front().clients());
  return plan_for(agreed);
}

Link& ClientFabric::open(const Plan& plan, Outcome&) {
  make_node(plan, Side::client, static_cast<std::uint32_t>(peers_.front().index()));
  link_ = make_client_link(host_side(plan));
  return *link_;
}

void ClientFabric::complete(const Plan&, const NodeReport& own, Outcome& outcome) {
  add_counters(own, outcome);
  outcome.environment["client"] = own_node().describe();
  outcome.config.update(own_node().settled());
}

}  // namespace verbscope
