#include "microbench/frame/host_run.hpp"

#include <cstdio>

#include "common/clock.hpp"
#include "common/environment.hpp"
#include "common/error.hpp"
#include "microbench/frame/conductor.hpp"
#include "microbench/frame/device_facts.hpp"
#include "microbench/frame/host_counters.hpp"
#include "microbench/frame/ports.hpp"
#include "verbs/host_provider.hpp"
#include "verbs/null_provider.hpp"

namespace verbscope {

namespace {

// Options that may differ between the two sides; all others must agree.
constexpr std::array kLocalOptions = {"fabric",          "clients", "client_threads", "ib_dev", "ib_port",
                                      "gid_index",       "port",    "timeout_s",      "cores",  "counters",
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

// The steps of the side under test, from "everybody is connected" on.
class ServerRun {
 public:
  ServerRun(Role& role, const Plan& plan, std::vector<Channel>& peers, const std::vector<int>& cores,
            Collector& collector, bool clients_may_leave)
      : role_(role),
        plan_(plan),
        peers_(peers),
        cores_(cores),
        collector_(collector),
        conductor_(role, peers, cores, plan.schedule.timeout) {
    if (clients_may_leave) conductor_.let_peers_leave();
  }

  void run(Outcome& outcome) {
    collector_.measure_background();
    for (Channel& peer : peers_) conductor_.hear(peer, "ready");
    for (Channel& peer : peers_) conductor_.tell(peer, "go", Json::object());
    measure(outcome);
    drain(outcome);
    for (Channel& peer : peers_) conductor_.tell(peer, "bye", Json::object());
  }

 private:
  void tell_phase(const char* phase) {
    for (Channel& peer : peers_) conductor_.tell(peer, "phase", Json{{"phase", phase}});
  }

  void measure(Outcome& outcome) {
    const bool no_warmup = plan_.schedule.warmup == Picos(0);
    if (no_warmup) conductor_.turn(Phase::measure);
    conductor_.start();
    collector_.attach(conductor_.thread_ids());
    conductor_.each_second([this] { tell_phase("warmup"); });
    if (!no_warmup) conductor_.wait_for(plan_.schedule.warmup, "the end of the warm-up");
    collector_.begin_window();
    const Picos begin = TscClock::now();
    const CpuSeconds cpu = process_cpu();
    conductor_.turn(Phase::measure);
    tell_phase("measure");
    conductor_.each_second([this] { tell_phase("measure"); });
    wait_for_window();
    const Picos window = TscClock::now() - begin;
    const CpuSeconds used = process_cpu() - cpu;
    collector_.end_window();
    conductor_.each_second(nullptr);
    // Receivers see their window's end in traffic that still flows, so those that send to them are stopped afterwards.
    const bool receives = role_.counted() && !role_.sends();
    conductor_.turn(Phase::stop);
    if (!receives) tell_phase("stop");
    conductor_.wait_until("the first completion after the window", false, [this] { return role_.windows_closed(); });
    if (receives) tell_phase("stop");
    conductor_.wait_until("the last completions", false, [this] { return role_.active_ended(); });
    outcome.result = role_result(role_, window, cores_, outcome.failure);
    outcome.result["cpu"] = cpu_json(used, window);
  }

  void wait_for_window() {
    // A thread that gets no core for a while must not miss the window.
    if (role_.counted()) {
      conductor_.wait_until("the first completion in the window", true, [this] { return role_.windows_opened(); });
    } else {
      for (Channel& peer : peers_) await_progress(peer, "opened");
    }
    if (!plan_.schedule.iters) {
      conductor_.wait_for(plan_.schedule.duration, "the end of the measurement");
    } else if (role_.counted()) {
      conductor_.wait_until("--iters", true, [this] { return role_.windows_closed(); });
    } else {
      for (Channel& peer : peers_) await_progress(peer, "closed");
    }
  }

  void await_progress(Channel& peer, const std::string& what) {
    for (bool reached = false; !reached;) {
      const std::optional<Json> progress = conductor_.hear(peer, "progress");
      reached = !progress || JsonFields(*progress, "message progress").require<bool>(what);
    }
  }

  void drain(Outcome& outcome) {
    Delivery delivery;
    for (std::size_t c = 0; c < peers_.size(); ++c) {
      conductor_.tell(peers_[c], "sent", Json{{"messages", role_.sent_to(static_cast<std::uint32_t>(c))}});
      const std::optional<Json> sent = conductor_.hear(peers_[c], "sent");
      if (sent) delivery.expected += JsonFields(*sent, "message sent").require<std::uint64_t>("messages");
    }
    conductor_.finish(delivery.expected);
    delivery = role_.delivery(delivery.expected);
    outcome.result.update(role_.results());  // of threads that were only worked on, and look now
    Json clients = Json::array();
    for (Channel& peer : peers_) {
      const std::optional<Json> result = conductor_.hear(peer, "result");
      if (!result) continue;
      JsonFields fields(*result, "message result");
      delivery +=
          {fields.require<std::uint64_t>("messages_expected"), fields.require<std::uint64_t>("messages_received"),
           fields.require<std::uint64_t>("checked"), fields.require<std::uint64_t>("wrong")};
      clients.push_back(Json{{"node", fmt::format("client{}", peer.index())}, {"result", *result}});
    }
    if (conductor_.peers_left() > 0) outcome.result["clients_gone"] = conductor_.peers_left();
    if (!peers_.empty()) {
      outcome.result.update(delivery_json(delivery, plan_.operation.validate));
      outcome.result["clients"] = clients;
      if (!role_.counted()) take_rate_of_clients(outcome.result);
    }
    judge_delivery(delivery, plan_.operation, outcome.failure);
  }

  Role& role_;
  const Plan& plan_;
  std::vector<Channel>& peers_;
  const std::vector<int>& cores_;
  Collector& collector_;
  Conductor conductor_;
};

// A client whose windows make the rate says how far they are.
void tell_progress(Conductor& conductor, Channel& server, const Role& role, bool exact) {
  const auto tell = [&] {
    conductor.tell(server, "progress", Json{{"opened", role.windows_opened()}, {"closed", role.windows_closed()}});
  };
  conductor.wait_until("the first completion in the window", false, [&role] { return role.windows_opened(); });
  tell();
  if (!exact) return;
  conductor.each_second(tell);
  conductor.wait_until("--iters", false, [&role] { return role.windows_closed(); });
  conductor.each_second(nullptr);
  tell();
}

// The steps of a client, from "connected" on.
void run_client_steps(Role& role, const Plan& plan, std::vector<Channel>& peers, const std::vector<int>& cores,
                      Collector& collector, Outcome& outcome) {
  Channel& server = peers.front();
  Conductor conductor(role, peers, cores, plan.schedule.timeout);
  collector.measure_background();
  conductor.tell(server, "ready", Json::object());
  conductor.await(server, "go");
  conductor.start();
  collector.attach(conductor.thread_ids());
  Picos begin{0}, window{0};
  CpuSeconds cpu, used;
  for (Phase phase = Phase::warmup; phase != Phase::stop;) {
    const Json body = conductor.await(server, "phase");
    const auto name = JsonFields(body, "message phase").require<std::string>("phase");
    const Phase said = name == "warmup" ? Phase::warmup : name == "measure" ? Phase::measure : Phase::stop;
    if (said == phase) continue;
    phase = said;
    if (phase == Phase::measure) {
      collector.begin_window();
      begin = TscClock::now();
      cpu = process_cpu();
    } else {
      window = TscClock::now() - begin;
      used = process_cpu() - cpu;
      collector.end_window();
    }
    conductor.turn(phase);
    if (phase == Phase::measure && role.counted()) {
      tell_progress(conductor, server, role, plan.schedule.iters.has_value());
    }
  }
  conductor.wait_until("the last completions", false, [&role] { return role.active_ended(); });
  conductor.tell(server, "sent", Json{{"messages", role.sent_to(0)}});
  const Json sent = conductor.await(server, "sent");
  Delivery delivery;
  delivery.expected = JsonFields(sent, "message sent").require<std::uint64_t>("messages");
  conductor.finish(delivery.expected);
  delivery = role.delivery(delivery.expected);
  outcome.result = role_result(role, window, cores, outcome.failure);
  outcome.result["cpu"] = cpu_json(used, window);
  outcome.result.update(delivery_json(delivery, plan.operation.validate));
  Json report = outcome.result;
  report["checked"] = delivery.checked;
  report["wrong"] = delivery.wrong;
  conductor.tell(server, "result", report);
  conductor.await(server, "bye");
  judge_delivery(delivery, plan.operation, outcome.failure);
}

// What both sides do with an error: the peer learns the reason.
template <class Body>
void telling_peers(std::vector<Channel>& peers, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
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
    ServerRun(role, plan, peers, cores, collector, benchmark.traffic().clients_may_leave).run(outcome);
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
    run_client_steps(role, plan, peers, cores, collector, outcome);
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
