#include "microbench/run/host_run.hpp"

#include <array>
#include <cstdio>
#include <exception>

#include "common/environment.hpp"
#include "common/error.hpp"
#include "machine/threads.hpp"
#include "microbench/run/host_counters.hpp"
#include "microbench/run/host_steps.hpp"
#include "microbench/run/ports.hpp"
#include "microbench/run/prediction.hpp"
#include "verbs/host_provider.hpp"
#include "verbs/null/provider.hpp"

namespace verbscope {

namespace {

// Options that may differ between the two sides; all others must agree.
constexpr std::array kLocalOptions = {"fabric",          "clients", "client_threads", "ib_dev", "ib_port",
                                      "gid_index",       "port",    "timeout_s",      "cores",  "counter_sources",
                                      "require_counters"};

std::vector<int> usable_cores(const Options& options) {
  const std::vector<int> cores = parse_cores(options.cores);
  for (const int core : cores) check_core(core);
  return cores.empty() ? allowed_cores() : cores;
}

RolePlace make_place(Provider& provider, const DevicePorts& ports, const Options& options) {
  return {&provider, ports.device, ports.ports, options.gid_index, options.mtu, true, options.fabric == "null"};
}

FabricFacts host_facts(const Options& options, const DevicePorts& ports, std::size_t cores) {
  FabricFacts facts;
  facts.alone = options.fabric == "null";
  facts.server_cores = facts.client_cores = static_cast<std::uint32_t>(cores);
  facts.ports = static_cast<std::uint32_t>(ports.ports.size());
  return facts;
}

// What both sides do with an error: the peer learns the reason.
template <class Body>
void telling_peers(std::vector<Channel>& peers, Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    for (Channel& peer : peers) peer.send_failure(error.what());
    throw;
  }
}

}  // namespace

Hello make_hello(const Benchmark& benchmark, const Options& options, const OptionTable& table) {
  Hello hello{benchmark.describe().name, build_info().version, table.values(), exchange_secret(options.secret)};
  for (const char* name : kLocalOptions) hello.parameters.erase(name);
  if (benchmark.traffic().client_qps) hello.parameters["client_threads"] = table.values().at("client_threads");
  return hello;
}

Outcome run_server(const Benchmark& benchmark, const Options& options, const OptionTable& table, Provider& provider) {
  const DevicePorts ports = choose_ports(provider, options.ib_dev, parse_ib_port(options.ib_port));
  const std::vector<int> cores = usable_cores(options);
  const Plan plan = make_plan(options, host_facts(options, ports, cores.size()), benchmark.traffic());
  Outcome outcome;
  outcome.config = plan_json(plan);
  const bool alone = options.fabric == "null";
  Role role(benchmark, plan, Side::server, 0, make_place(provider, ports, options));
  std::vector<Channel> peers;
  if (!alone) {
    ExchangeServer exchange(static_cast<int>(options.port), make_hello(benchmark, options, table));
    fmt::print("listening on port {}\n", exchange.port());
    std::fflush(stdout);
    peers = exchange.accept(static_cast<int>(plan.topology.clients), plan.schedule.timeout);
  }
  telling_peers(peers, [&] {
    if (alone) {
      role.connect_alone();
    } else {
      std::vector<Json> theirs;
      for (Channel& peer : peers) theirs.push_back(peer.receive("endpoints", plan.schedule.timeout));
      for (Channel& peer : peers) peer.send("endpoints", role.endpoints(), plan.schedule.timeout);
      role.connect(theirs);
    }
    Collector collector = make_collector(role, options, plan.schedule, ports);
    run_server_steps({role, plan, peers, cores, collector}, benchmark.traffic().clients_may_leave, outcome);
    take_counters(collector, outcome);
  });
  outcome.environment["server"] = role.describe();
  outcome.config["mtu"] = role.mtu();
  outcome.prediction = predict_for_device(benchmark, plan, role, outcome.result, outcome.no_prediction);
  benchmark.finish(outcome);
  return outcome;
}

Outcome run_client(const Benchmark& benchmark, const Options& given, const OptionTable& table, Provider& provider) {
  const DevicePorts ports = choose_ports(provider, given.ib_dev, parse_ib_port(given.ib_port));
  const std::vector<int> cores = usable_cores(given);
  Options options = given;
  FabricFacts facts = host_facts(options, ports, cores.size());
  // Refuses before anybody is troubled; the number of clients is the server's to say.
  const Picos timeout = make_plan(options, facts, benchmark.traffic()).schedule.timeout;
  std::vector<Channel> peers;
  peers.push_back(
      connect_exchange(options.host, static_cast<int>(options.port), make_hello(benchmark, options, table), timeout));
  Channel& server = peers.front();
  options.clients = static_cast<std::uint32_t>(server.clients());
  Outcome outcome;
  telling_peers(peers, [&] {
    const Plan plan = make_plan(options, facts, benchmark.traffic());
    outcome.config = plan_json(plan);
    Role role(benchmark, plan, Side::client, static_cast<std::uint32_t>(server.index()),
              make_place(provider, ports, options));
    server.send("endpoints", role.endpoints(), timeout);
    role.connect({server.receive("endpoints", timeout)});
    Collector collector = make_collector(role, options, plan.schedule, ports);
    run_client_steps({role, plan, peers, cores, collector}, outcome);
    take_counters(collector, outcome);
    outcome.environment["client"] = role.describe();
    outcome.config["mtu"] = role.mtu();
  });
  return outcome;
}

Outcome run_on_host(const Benchmark& benchmark, const Options& options, const OptionTable& table) {
  if (options.fabric == "null") {
    if (options.validate) fail_usage("--validate: the null device moves no bytes");
    NullProvider provider;
    return run_server(benchmark, options, table, provider);
  }
  HostProvider provider;
  return options.host.empty() ? run_server(benchmark, options, table, provider)
                              : run_client(benchmark, options, table, provider);
}

}  // namespace verbscope
