#include "microbench/bench/plan.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kUsualSignalEvery = 64;
constexpr Picos kWarmup = 500ms;
constexpr Picos kLocalWarmup = 200ms;
constexpr Picos kDuration = 3s;
constexpr Picos kNullDuration = 1s;
constexpr Picos kSimWarmup = 1ms;  // until buffers between a fast sender and a slow receiver are full
constexpr Picos kSimDuration = 1ms;
constexpr Picos kTimeout = 10s;
// The default of --longest: at least this time, and this many times --warmup plus --duration.
constexpr Picos kLongest = 30s;
constexpr int kLongestTimes = 10;
constexpr Picos kSimLongest = 20ms;
constexpr int kSimLongestTimes = 100;
constexpr Picos kSimStuck = 200ms;
// On a machine with other load the halves of an interval differ by chance.
constexpr double kSteadyWithin = 0.25;
constexpr double kSimSteadyWithin = 0.02;
// One simulated core can receive more messages than one machine sends to it. More threads would only cost real time.
constexpr std::uint32_t kSimReceivingThreads = 1;

std::uint32_t largest_divisor(std::uint64_t of, std::uint32_t at_most) {
  for (std::uint32_t d = at_most; d > 1; --d) {
    if (of % d == 0) return d;
  }
  return 1;
}

// Refuses options that do not fit the benchmark's verb or its outstanding operations.
void check_operation(const Operation& op) {
  const TransportFacts& transport = facts(op.transport);
  if (!transport.verbs.has(op.verb)) {
    fail_usage("--connection {}: it has no {}", to_string(op.transport), to_string(op.verb));
  }
  if (op.header_only && op.verb != Verb::send) {
    fail_usage("--header_only: only with SENDs, a {} has no receiver for the immediate", to_string(op.verb));
  }
  if (op.most_outstanding > op.tx_depth) {
    fail_usage("--window {} is more than the send queue holds (--tx_depth {})", op.most_outstanding, op.tx_depth);
  }
  if (op.post_list > op.outstanding()) {
    fail_usage("--post_list {} is more than --window {} allows", op.post_list, op.most_outstanding);
  }
  if (op.signal_every + op.post_list > op.outstanding() + 1) {
    fail_usage(
        "--cq_mod {} with --post_list {} can wait for ever with --window {}: cq_mod + post_list may be at most window "
        "+ "
        "1",
        op.signal_every, op.post_list, op.most_outstanding);
  }
  if (op.inlined && op.verb == Verb::read) fail_usage("--inline_size {}: a READ sends no payload", op.inline_limit);
}

Operation plan_operation(const Options& o, const FabricFacts& fabric, Operation op, std::optional<std::uint64_t> goal) {
  op.transport = o.connection;
  op.header_only = o.header_only;
  op.payload = o.header_only ? 0 : o.size.value_or(kDefaultSize);
  const std::uint32_t limit = op.inline_up_to > 0 ? std::min(op.inline_up_to, fabric.max_inline) : o.inline_size;
  op.inlined = op.payload > 0 && op.payload <= limit;
  op.inline_limit = o.header_only ? 0 : limit;
  op.post_list = o.post_list;
  op.tx_depth = o.tx_depth;
  op.signal_every = o.cq_mod ? *o.cq_mod : default_signal_every(o.post_list, op.outstanding(), goal);
  op.inline_recv = o.inline_recv;
  op.builder = o.wr_api;
  op.events = o.events;
  op.validate = o.validate;
  op.seed = o.seed;
  if (goal && *goal % op.signal_every != 0) {
    fail_usage("--iters {} is not a multiple of --cq_mod {}, the step in which the operations of a QP complete", *goal,
               op.signal_every);
  }
  check_operation(op);
  return op;
}

Topology plan_topology(const Options& o, const FabricFacts& fabric, Side driver, Topology t) {
  t.local = fabric.local;
  t.transport = o.connection;
  t.threads = o.threads;
  t.qps_per_thread = o.qp;
  t.ports = fabric.ports;
  const auto check_cores = [&fabric](const char* option, std::uint32_t threads, std::uint32_t cores) {
    if (threads <= cores * fabric.threads_per_core) return;
    fail_usage("{} {} is more than the {} cores to pin them to", option, threads, cores * fabric.threads_per_core);
  };
  if (o.host.empty()) check_cores("--threads", o.threads, fabric.server_cores);
  if (o.client_threads && (fabric.simulated || !o.host.empty())) {
    check_cores("--client_threads", *o.client_threads, fabric.client_cores);
  }
  const std::uint32_t simulated_threads =
      driver == Side::server ? std::min(kSimReceivingThreads, fabric.client_cores) : fabric.client_cores;
  t.client_threads = o.client_threads.value_or(fabric.simulated ? simulated_threads : 1);
  t.clients = fabric.alone ? 1 : o.clients.value_or(fabric.default_clients);
  if (t.qps_per_pair > 0) t.qps_per_thread = t.qps_per_pair * (facts(t.transport).connected ? t.clients : 1);
  if (fabric.alone) return t;
  const bool one_client_a_qp = facts(o.connection).connected && !t.client_qps;
  if (one_client_a_qp && t.clients > t.server_qps()) {
    if (o.clients) {
      fail_usage(
          "--clients {}: the server's {} x {} connected QPs reach at most {} clients: give --clients {}, or --qp {}",
          t.clients, t.groups(), o.qp, t.server_qps(), t.server_qps(), (t.clients + t.groups() - 1) / t.groups());
    }
    t.clients = t.server_qps();
  }
  return t;
}

}  // namespace

std::uint32_t default_signal_every(std::uint32_t post_list, std::uint32_t depth, std::optional<std::uint64_t> goal) {
  const std::uint32_t cap = std::min({kUsualSignalEvery, std::max(1u, depth / 2), depth + 1 - post_list});
  if (goal) return largest_divisor(*goal, cap);
  return post_list <= cap ? cap / post_list * post_list : largest_divisor(post_list, cap);
}

namespace {

// One RECV per outstanding request of the clients, and more for those that a polling pass has not posted again yet.
std::uint32_t default_rx_depth(std::uint64_t messages_at_once) {
  constexpr std::uint64_t kPerPass = 128;
  constexpr std::uint64_t kMax = 8192;  // ConnectX-3 offers 16,351 work requests per queue
  if (messages_at_once == 0) return kUsualRxDepth;
  const std::uint64_t wanted = round_up(messages_at_once + kPerPass, 64);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, kUsualRxDepth, kMax));
}

}  // namespace

Plan make_plan(const Options& o, const FabricFacts& facts, const Plan& draft) {
  if (facts.alone && draft.operation.counted == Side::client) {
    fail_usage("--fabric null: this benchmark posts at clients, and the null device has no clients");
  }
  Plan plan;
  std::optional<std::uint64_t> goal;
  // Senders count the completions of each QP in steps of cq_mod, receivers one by one.
  if (o.iters && draft.operation.driver == draft.operation.counted) goal = *o.iters;
  plan.operation = plan_operation(o, facts, draft.operation, goal);
  Operation& op = plan.operation;
  op.relaxed_ordering = !o.disable_pcie_relaxed && !facts.simulated && !facts.alone;
  plan.topology = plan_topology(o, facts, op.driver, draft.topology);
  op.messages_at_once = std::uint64_t{plan.topology.all_client_threads()} * op.requests_per_client_thread;
  op.rx_depth = o.rx_depth.value_or(default_rx_depth(op.messages_at_once));
  const Picos warmup = facts.local ? kLocalWarmup : kWarmup;
  plan.schedule.iters = o.iters;
  plan.schedule.warmup = o.warmup.value_or(facts.simulated ? kSimWarmup : warmup);
  plan.schedule.duration = o.duration.value_or(facts.simulated ? kSimDuration
                                               : facts.alone   ? kNullDuration
                                                               : kDuration);
  plan.schedule.threads_end_it = o.iters.has_value() || draft.schedule.threads_end_it;
  plan.schedule.timeout = o.timeout.value_or(kTimeout);
  const Picos asked = plan.schedule.warmup + plan.schedule.duration;
  plan.schedule.longest = o.longest.value_or(
      std::max(facts.simulated ? kSimLongest : kLongest, asked * (facts.simulated ? kSimLongestTimes : kLongestTimes)));
  plan.schedule.forever = o.run_infinitely;
  if (plan.schedule.forever) {
    if (plan.schedule.threads_end_it) fail_usage("--run_infinitely: not with this benchmark, which ends by itself");
    plan.schedule.longest = Picos::max();
  }
  if (plan.schedule.longest < asked) {
    fail_usage("--longest {} s: less than --warmup plus --duration, {} s", to_seconds(plan.schedule.longest),
               to_seconds(asked));
  }
  plan.schedule.stuck = std::max(kSimStuck, kRetransmissions * Picos(4'096'000LL << o.qps.qp_timeout.value_or(0)));
  plan.schedule.steady_within = facts.simulated ? kSimSteadyWithin : kSteadyWithin;
  return plan;
}

namespace {

std::vector<QpPlan> server_ends(const Topology& t) {
  std::vector<QpPlan> qps;
  for (std::uint32_t g = 0; t.client_qps->connected && g < t.all_client_threads(); ++g) {
    qps.push_back({g % t.ports, g % t.threads, {{g / t.client_threads, g % t.client_threads}}, t.transport});
  }
  const std::uint32_t first = t.client_qps->connected ? t.client_threads : 0;  // UD QP of a client
  for (std::uint32_t k = 0; t.client_qps->datagram && k < t.server_qps() * t.ports; ++k) {
    QpPlan qp{k % t.ports, k / t.ports / t.qps_per_thread, {}, Transport::ud};
    for (std::uint32_t g = qp.port; g < t.all_client_threads(); g += t.ports) {
      qp.partners.push_back({g / t.client_threads, first + g % t.client_threads});
    }
    qps.push_back(qp);
  }
  return qps;
}

std::vector<QpPlan> client_ends(const Topology& t, std::uint32_t client) {
  std::vector<QpPlan> qps;
  const std::uint32_t begin = client * t.client_threads;
  for (std::uint32_t i = 0; t.client_qps->connected && i < t.client_threads; ++i) {
    qps.push_back({(begin + i) % t.ports, i, {{0, begin + i}}, t.transport});
  }
  const std::uint32_t first = t.client_qps->connected ? t.all_client_threads() : 0;  // UD QP of the server
  for (std::uint32_t i = 0; t.client_qps->datagram && i < t.client_threads; ++i) {
    QpPlan qp{(begin + i) % t.ports, i, {}, Transport::ud};
    for (std::uint32_t k = qp.port; k < t.server_qps() * t.ports; k += t.ports) qp.partners.push_back({0, first + k});
    qps.push_back(qp);
  }
  return qps;
}

// In the order of threads, of a thread's QPs per pair, and of the other machines. On UD one QP serves all machines.
std::vector<QpPlan> paired_ends(const Topology& t, std::uint32_t machine) {
  std::vector<QpPlan> qps;
  const std::uint32_t others = t.machines() - 1;
  if (!facts(t.transport).connected) {
    for (std::uint32_t k = 0; k < t.threads_of(machine) * t.qps_per_pair; ++k) {
      const std::uint32_t thread = k / t.qps_per_pair;
      QpPlan qp{thread % t.ports, thread, {}, t.transport};
      for (std::uint32_t number = 0; number < others; ++number) {
        if (!t.any_thread) qp.partners.push_back({number, k});
        const std::uint32_t all = t.threads_of(peer_machine(machine, number)) * t.qps_per_pair;
        for (std::uint32_t theirs = 0; t.any_thread && theirs < all; ++theirs) {
          if (theirs / t.qps_per_pair % t.ports == qp.port) qp.partners.push_back({number, theirs});
        }
      }
      qps.push_back(qp);
    }
    return qps;
  }
  for (std::uint32_t k = 0; k < t.threads * t.qps_per_pair * others; ++k) {
    const std::uint32_t thread = k / (t.qps_per_pair * others), number = k % others;
    const std::uint32_t back = peer_number(peer_machine(machine, number), machine);
    qps.push_back({thread % t.ports, thread, {{number, k / others * others + back}}, t.transport});
  }
  return qps;
}

}  // namespace

namespace {

// Threads of the first client, which has the most QPs: at most one per QP.
std::uint32_t client_threads(const Topology& t) {
  if (t.client_qps || t.qps_per_pair > 0) return t.client_threads;
  const bool dealt = facts(t.transport).connected;
  const std::uint32_t qps = dealt ? (t.server_qps() + t.clients - 1) / t.clients : t.server_qps();
  return std::min(t.client_threads, qps);
}

}  // namespace

Json plan_json(const Plan& plan) {
  const Json duration = plan.schedule.iters ? Json() : Json(to_seconds(plan.schedule.duration));
  const double warmup_s = to_seconds(plan.schedule.warmup), longest_s = to_seconds(plan.schedule.longest);
  if (plan.topology.local) return Json{{"duration_s", duration}, {"warmup_s", warmup_s}, {"longest_s", longest_s}};
  return Json{{"size", plan.operation.payload},
              {"inline_size", plan.operation.inline_limit},
              {"inlined", plan.operation.inlined},
              {"cq_mod", plan.operation.signal_every},
              {"rx_depth", plan.operation.rx_depth},
              {"qp", plan.topology.qps_per_thread},
              {"clients", plan.topology.clients},
              {"client_threads", client_threads(plan.topology)},
              {"ports", plan.topology.ports},
              {"duration_s", duration},
              {"warmup_s", warmup_s},
              {"longest_s", longest_s},
              {"timeout_s", to_seconds(plan.schedule.timeout)}};
}

std::vector<QpPlan> plan_qps(const Topology& t, Side side, std::uint32_t client) {
  if (t.local) return {};
  if (t.qps_per_pair > 0) return paired_ends(t, side == Side::server ? 0 : client + 1);
  if (t.client_qps) return side == Side::server ? server_ends(t) : client_ends(t, client);
  const bool datagram = !facts(t.transport).connected;
  std::vector<QpPlan> qps;
  for (std::uint32_t k = 0; k < t.server_qps(); ++k) {
    const std::uint32_t owner = k % t.clients;
    if (side == Side::server) {
      QpPlan qp{k % t.ports, k / t.qps_per_thread, {}, t.transport};
      if (datagram) {
        for (std::uint32_t c = 0; c < t.clients; ++c) qp.partners.push_back({c, k});
      } else {
        qp.partners.push_back({owner, k / t.clients});
      }
      qps.push_back(qp);
    } else if (datagram || owner == client) {
      const auto index = static_cast<std::uint32_t>(qps.size());
      qps.push_back({k % t.ports, index % t.client_threads, {{0, k}}, t.transport});
    }
  }
  return qps;
}

std::vector<std::uint32_t> peer_machines(const Topology& t, std::uint32_t machine) {
  std::vector<std::uint32_t> peers;
  const std::uint32_t count = machine == 0 || t.qps_per_pair > 0 ? t.machines() - 1 : 1;
  for (std::uint32_t number = 0; number < count; ++number) peers.push_back(peer_machine(machine, number));
  return peers;
}

std::uint32_t used_threads(const std::vector<QpPlan>& qps) {
  std::uint32_t threads = 0;
  for (const QpPlan& qp : qps) threads = std::max(threads, qp.thread + 1);
  return threads;
}

}  // namespace verbscope
