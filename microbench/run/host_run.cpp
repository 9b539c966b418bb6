#include "microbench/run/host_run.hpp"

#include <array>
#include <cstdio>
#include <exception>

#include "common/error.hpp"
#include "common/record.hpp"
#include "common/terminal.hpp"
#include "exchange/exchange.hpp"
#include "machine/threads.hpp"
#include "microbench/run/counted_provider.hpp"
#include "microbench/run/host_counters.hpp"
#include "microbench/run/ports.hpp"
#include "microbench/run/prediction.hpp"
#include "microbench/run/rate_check.hpp"
#include "microbench/run/tcp_link.hpp"
#include "verbs/host_provider.hpp"
#include "verbs/null/provider.hpp"

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

NodePlace make_place(Provider& provider, const DevicePorts& ports, const Options& options) {
  return {&provider,
          ports.device,
          ports.ports,
          options.gid_index,
          options.mtu,
          true,
          options.fabric == "null",
          parse_uars(options.uars),
          options.qps};
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

FabricFacts host_facts(Provider& provider, const Options& options, const Traffic& traffic, const DevicePorts& ports) {
  FabricFacts facts;
  if (traffic.inline_up_to > 0) facts.max_inline = offered_inline(provider, options, ports);
  facts.alone = options.fabric == "null";
  facts.server_cores = facts.client_cores = static_cast<std::uint32_t>(usable_cores(options));
  facts.ports = static_cast<std::uint32_t>(ports.ports.size());
  return facts;
}

// Throws when the device cannot run a client of this plan: a GID or an MTU that its ports do not have, a message that
// is over it. Returns the time that the plan has for waits.
Picos check_client(const Benchmark& benchmark, const Plan& plan, const NodePlace& place) {
  const NodePart part(benchmark, plan, Side::client, 0, place);
  const NodePorts ports(part, place);
  return plan.schedule.timeout;
}

// The server's clients, when all are there.
std::vector<Channel> meet_clients(const Options& options, Terms terms, const Plan& plan) {
  const std::string secret = exchange_secret(options.secret);
  ExchangeServer exchange(static_cast<int>(options.port), std::move(terms), secret, options.listen);
  if (secret.empty()) {
    warn(fmt::format("no secret (--secret or VERBSCOPE_SECRET): anyone who reaches port {} may join", exchange.port()));
  }
  print_format(stdout, "listening on port {}\n", exchange.port());
  return exchange.accept(static_cast<int>(plan.topology.clients), plan.schedule.timeout);
}

// Runs `body`; the peers learn the reason of an error.
template <class Body>
void telling_peers(std::vector<Channel>& peers, Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    for (Channel& peer : peers) peer.send_failure(error.what());
    throw;
  }
}

// The steps of this process's node, from the connection to its result.
PointReports run_steps(const HostSide& side, Link& link, const Traffic& traffic, Outcome& outcome) {
  PhaseMachine(side.node, link).run();
  PointReports result = make_result(link.collect(outcome.failure), side.plan, traffic.counted, outcome.failure);
  outcome.result = result_json(result);
  take_counters(side.collector, result.own.rate_mops, outcome);
  return result;
}

}  // namespace

Terms make_terms(const Benchmark& benchmark, const Options& options, const OptionTable& table) {
  const BuildInfo build = build_info();
  Terms terms{benchmark.describe().name, build.version, build.git_revision, options.any_build, table.values()};
  for (const char* name : kLocalOptions) terms.parameters.erase(name);
  if (benchmark.traffic().client_qps) terms.parameters["client_threads"] = table.values().at("client_threads");
  return terms;
}

Outcome run_server(const Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider) {
  const DevicePorts ports = choose_ports(provider, options.ib_dev, parse_ib_port(options.ib_port));
  const Traffic traffic = benchmark.traffic();
  const Plan plan = make_plan(options, host_facts(provider, options, traffic, ports), traffic);
  Outcome outcome;
  outcome.config = plan_json(plan);
  NodeRun node(benchmark, plan, Side::server, 0, make_place(provider, ports, options));
  const RunCores cores(parse_cores(options.cores), node.threads().size());
  std::vector<Channel> peers;
  if (options.fabric != "null") peers = meet_clients(options, make_terms(benchmark, options, table), plan);
  PointReports result;
  telling_peers(peers, [&] {
    Collector collector = make_collector(node, options, plan.schedule, ports);
    const HostSide side{node, plan, peers, cores, collector};
    result = run_steps(side, *make_server_link(side, traffic.clients_may_leave), traffic, outcome);
  });
  outcome.environment["server"] = node.describe();
  outcome.config.update(node.settled());
  check_against_ports(plan, traffic, node.mtu(), outcome);
  predict_for_device(benchmark, plan, node, result.own, outcome);
  benchmark.finish(outcome);
  return outcome;
}

Outcome run_client(const Benchmark& benchmark, const Options& given, const OptionTable& table, Provider& provider) {
  const DevicePorts ports = choose_ports(provider, given.ib_dev, parse_ib_port(given.ib_port));
  Options options = given;
  const Traffic traffic = benchmark.traffic();
  const FabricFacts facts = host_facts(provider, options, traffic, ports);
  const NodePlace place = make_place(provider, ports, options);
  // Refuses before anybody is troubled; the number of clients is the server's to say.
  const Picos timeout = check_client(benchmark, make_plan(options, facts, traffic), place);
  std::vector<Channel> peers;
  peers.push_back(connect_exchange(options.host, static_cast<int>(options.port), make_terms(benchmark, options, table),
                                   exchange_secret(options.secret), timeout));
  const Channel& server = peers.front();
  options.clients = static_cast<std::uint32_t>(server.clients());
  Outcome outcome;
  telling_peers(peers, [&] {
    const Plan plan = make_plan(options, facts, traffic);
    outcome.config = plan_json(plan);
    NodeRun node(benchmark, plan, Side::client, static_cast<std::uint32_t>(server.index()), place);
    const RunCores cores(parse_cores(options.cores), node.threads().size());
    Collector collector = make_collector(node, options, plan.schedule, ports);
    const HostSide side{node, plan, peers, cores, collector};
    run_steps(side, *make_client_link(side), traffic, outcome);
    outcome.environment["client"] = node.describe();
    outcome.config.update(node.settled());
  });
  return outcome;
}

Outcome run_on_host(const Benchmark& benchmark, const Options& options, const OptionTable& table) {
  if (options.fabric == "null") {
    if (options.validate) fail_usage("--validate: the null device moves no bytes");
    NullProvider provider;
    CountedProvider counted(provider, driver::usual_facts(NicFamily::mlx5, true), true);
    Provider& given = asks_for_driver(options.counter_sources) ? static_cast<Provider&>(counted) : provider;
    return run_server(benchmark, options, table, given);
  }
  HostProvider provider;
  CountedProvider counted(provider, std::nullopt, true);
  Provider& given = asks_for_driver(options.counter_sources) ? static_cast<Provider&>(counted) : provider;
  return options.host.empty() ? run_server(benchmark, options, table, given)
                              : run_client(benchmark, options, table, given);
}

}  // namespace verbscope
