#include "microbench/plan.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kUsualSignalEvery = 64;
constexpr Picos kWarmup = 500ms;
constexpr Picos kDuration = 3s;
constexpr Picos kNullDuration = 1s;
constexpr Picos kSimWarmup = 1ms;  // until buffers between a fast sender and a slow receiver are full
constexpr Picos kSimDuration = 1ms;
constexpr Picos kTimeout = 10s;
// A simulated core takes more messages than its share of what one machine sends; more cores would idle, and that takes
// time.
constexpr std::uint32_t kSimReceivingThreads = 1;

std::uint32_t largest_divisor(std::uint64_t of, std::uint32_t at_most) {
  for (std::uint32_t d = at_most; d > 1; --d) {
    if (of % d == 0) return d;
  }
  return 1;
}

Operation plan_operation(const Options& o, std::optional<std::uint64_t> goal) {
  Operation op;
  op.transport = o.connection;
  op.header_only = o.header_only;
  op.payload = o.header_only ? 0 : o.size.value_or(kDefaultSize);
  op.inlined = op.payload > 0 && op.payload <= o.inline_size;
  op.inline_limit = o.header_only ? 0 : o.inline_size;
  op.post_list = o.post_list;
  op.signal_every = o.cq_mod ? *o.cq_mod : default_signal_every(o.post_list, o.tx_depth, goal);
  op.tx_depth = o.tx_depth;
  op.rx_depth = o.rx_depth;
  op.validate = o.validate;
  op.seed = o.seed;
  if (goal && *goal % op.signal_every != 0) {
    fail_usage("--iters {} with --qp {} is not a multiple of --cq_mod {}: completions come in steps of cq_mod",
               *o.iters, o.qp, op.signal_every);
  }
  return op;
}

Topology plan_topology(const Options& o, const FabricFacts& facts, bool server_sends) {
  Topology t;
  t.transport = o.connection;
  t.threads = o.threads;
  t.qps_per_thread = o.qp;
  t.ports = facts.ports;
  const std::uint32_t cores = o.host.empty() ? facts.server_cores : facts.client_cores;
  if (o.host.empty() && o.threads > cores) {
    fail_usage("--threads {} is more than the {} cores there are to pin them to", o.threads, cores);
  }
  if (o.client_threads && *o.client_threads > facts.client_cores && (facts.simulated || !o.host.empty())) {
    fail_usage("--client_threads {} is more than the {} cores there are to pin them to", *o.client_threads,
               facts.client_cores);
  }
  const std::uint32_t simulated_threads =
      server_sends ? std::min(kSimReceivingThreads, facts.client_cores) : facts.client_cores;
  t.client_threads = o.client_threads.value_or(facts.simulated ? simulated_threads : 1);
  if (facts.alone) {
    t.clients = 1;
    return t;
  }
  const bool one_client_a_qp = o.connection != Transport::ud;
  t.clients = o.clients.value_or(facts.default_clients);
  if (one_client_a_qp && t.clients > t.server_qps()) {
    if (o.clients) {
      fail_usage("--clients {}: the server's {} x {} connected QPs reach at most {} clients", t.clients, o.threads,
                 o.qp, t.server_qps());
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

Plan make_plan(const Options& o, const FabricFacts& facts, bool server_sends) {
  Plan plan;
  std::optional<std::uint64_t> goal;
  if (o.iters && server_sends) goal = *o.iters * o.qp;
  plan.operation = plan_operation(o, goal);
  plan.topology = plan_topology(o, facts, server_sends);
  plan.schedule.iters = o.iters;
  plan.schedule.warmup = o.warmup.value_or(facts.simulated ? kSimWarmup : kWarmup);
  plan.schedule.duration = o.duration.value_or(facts.simulated ? kSimDuration
                                               : facts.alone   ? kNullDuration
                                                               : kDuration);
  plan.schedule.timeout = o.timeout.value_or(kTimeout);
  return plan;
}

std::vector<QpPlan> plan_qps(const Topology& t, Side side, std::uint32_t client) {
  const bool datagram = t.transport == Transport::ud;
  std::vector<QpPlan> qps;
  for (std::uint32_t k = 0; k < t.server_qps(); ++k) {
    const std::uint32_t owner = k % t.clients;
    if (side == Side::server) {
      QpPlan qp{k % t.ports, k / t.qps_per_thread, {}};
      if (datagram) {
        for (std::uint32_t c = 0; c < t.clients; ++c) qp.partners.push_back({c, k});
      } else {
        qp.partners.push_back({owner, k / t.clients});
      }
      qps.push_back(qp);
    } else if (datagram || owner == client) {
      const auto index = static_cast<std::uint32_t>(qps.size());
      qps.push_back({k % t.ports, index % t.client_threads, {{0, k}}});
    }
  }
  return qps;
}

std::uint32_t used_threads(const std::vector<QpPlan>& qps) {
  std::uint32_t threads = 0;
  for (const QpPlan& qp : qps) threads = std::max(threads, qp.thread + 1);
  return threads;
}

}  // namespace verbscope
