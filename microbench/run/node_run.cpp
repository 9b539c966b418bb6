#include "microbench/run/node_run.hpp"

#include <algorithm>
#include <cmath>

#include "common/error.hpp"
#include "common/text.hpp"
#include "microbench/run/console.hpp"
#include "microbench/run/rate_check.hpp"

namespace verbscope {

NodeRun::NodeRun(const Benchmark& benchmark, const Plan& plan, Side side, std::uint32_t client, const NodePlace& place)
    : part_(benchmark, plan, side, client, place),
      device_(part_, place),
      threads_(part_.threads()),
      qps_(part_, device_) {}

void NodeRun::connect(const std::vector<Json>& nodes) {
  std::vector<Json> peers;
  for (const std::uint32_t machine : peer_machines(part_.plan.topology, part_.machine())) {
    if (machine >= nodes.size()) fail("{} was started for more machines than the {} that joined", name(), nodes.size());
    peers.push_back(nodes[machine]);
  }
  qps_.connect(peers);
  build_workloads();
}

void NodeRun::connect_alone() {
  if (!part_.plan.topology.local) qps_.connect_alone();
  build_workloads();
}

void NodeRun::build_workloads() {
  const Plan& plan = part_.plan;
  const bool exact = counted() && plan.schedule.iters.has_value();
  const bool own = plan.topology.client_qps.has_value();  // a thread's QPs serve one stream of requests
  const std::uint32_t members = part_.threads_per_qp();
  const std::uint64_t sharing = std::min<std::uint64_t>(members, threads_.size());
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    ThreadQueues queues = plan.topology.local ? ThreadQueues{} : qps_.queues(t);
    const std::size_t lanes = queues.lanes.size();
    if (members > 1 && t % members == 0) shared_.emplace_back(members, lanes);
    const std::uint64_t goal =
        exact ? *plan.schedule.iters * (own ? 1 : lanes) / sharing : std::uint64_t{MeasuredInterval::kNoGoal};
    threads_.add(
        part_.benchmark.setup({plan.operation, plan.topology, part_.side, part_.client, static_cast<std::uint32_t>(t),
                               goal, device(), device_.pd(), queues.cq, queues.channel, queues.srq, qps_.rd_atomic(),
                               device_.region(), std::move(queues.lanes), part_.huge_pages,
                               members > 1 ? &shared_.back() : nullptr, static_cast<std::uint32_t>(t % members)}));
  }
}

std::string NodeRun::failure() const {
  const std::optional<std::size_t> thread = threads_.failed();
  if (!thread) return "";
  const RunEnd& end = threads_.tally(*thread).end;
  return fmt::format("{}: thread {}, {}: {}", name(), *thread, qps_.lane_name(*thread, end.queue),
                     verbscope::describe(end));
}

std::string NodeRun::why_missing() const {
  const Operation& operation = part_.plan.operation;
  std::string why;
  if (part_.settings.qp_timeout == 0u) why = "; with --qp_timeout 0 a QP never resends a lost packet";
  if (operation.messages_at_once > operation.rx_depth) {
    why += fmt::format(
        "; up to {} requests are outstanding at a QP with {} RECVs, and requests without a RECV are lost: raise "
        "--rx_depth",
        operation.messages_at_once, operation.rx_depth);
  }
  return why;
}

void NodeRun::check_thread(std::size_t thread, const ThreadReport& report, std::string& failure) const {
  if (!counted() || !threads_.workload(thread).counts() || report.rate_mops > 0 || !failure.empty()) return;
  const std::uint32_t step = part_.plan.operation.signal_every;
  if (const auto& iters = part_.plan.schedule.iters) {
    failure = report.ops > 0
                  ? fmt::format("{}: thread {}: too few --iters for a rate: all {} of a QP completed at once", name(),
                                thread, *iters)
                  : fmt::format("{}: thread {} did not complete --iters {}{}", name(), thread, *iters, why_missing());
    return;
  }
  failure = fmt::format("{}: thread {} completed no operation in the measured interval: give a longer --duration{}{}",
                        name(), thread, step > 1 ? fmt::format(", or a --cq_mod under {}", step) : "", why_missing());
}

// With few completions per QP, compares the rate with that of the warm-up, if the warm-up was longer: on devices no
// adapter counts the operations.
void NodeRun::check_count(const NodeReport& report, std::string& failure) const {
  constexpr std::uint64_t kFew = 4;  // with more, the ends of the interval matter less than other load of the host
  const Plan& plan = part_.plan;
  if (!failure.empty() || report.rate_mops <= 0 || *plan.schedule.iters >= kFew * plan.operation.signal_every) return;
  const double before = to_seconds(plan.schedule.warmup) > report.window_s ? threads_.rate_before() : 0;
  if (before <= 0 || std::abs(report.rate_mops - before) <= kCountersAgreeByCount * before) return;
  failure =
      fmt::format("{}: too few --iters for a rate: {} operations are {} Mops, and the warm-up before them was {} Mops",
                  name(), report.ops, with_digits(report.rate_mops, 3), with_digits(before, 3));
}

NodeReport NodeRun::report(const IntervalUse& interval, std::uint64_t expected, const std::vector<int>& cores,
                           std::string& failure) const {
  NodeReport report;
  report.node = name();
  report.window_s = to_seconds(interval.time);
  double rate = 0;
  std::uint64_t ops = 0;
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    const ThreadReport& thread = report.threads.emplace_back(threads_.report(t, cores.at(t)));
    rate += thread.rate_mops;
    ops += thread.ops;
    check_thread(t, thread, failure);
  }
  std::optional<double> span_s;
  if (part_.plan.schedule.iters && ops > 0) span_s = to_seconds(threads_.counted_span());
  set_rate(report, rate, ops, span_s);
  if (part_.plan.schedule.iters && counted() && part_.benchmark.moves_payloads()) check_count(report, failure);
  report.findings = threads_.findings(part_.benchmark);
  report.cpu = cpu_report(interval);
  if (part_.plan.operation.events) report.cq_armings = interval.armed;
  report.has_peers = !part_.alone;
  report.delivery = threads_.delivery(expected, part_.plan.operation.validate);
  return report;
}

Json NodeRun::describe() const {
  Json json = device_.ports().describe();
  json["buffers"] = threads_.describe_memory();
  if (const Json region = device_.describe_region(); !region.is_null()) json["region"] = region;
  Json& relaxed = json["relaxed_ordering"] = Json::array();
  if (threads_.relaxed()) relaxed.push_back("buffers");
  if (device_.region_relaxed()) relaxed.push_back("region");
  return json;
}

std::string NodeRun::interval_line(const IntervalRates& rates, const char* label) const {
  const double payload = part_.benchmark.moves_payloads() ? part_.plan.operation.payload : 0;
  return fmt::format("  {} over {:g} {}s\n", rate_text(rates.mops, "", payload, label),
                     to_seconds(part_.plan.schedule.duration), label);
}

Json NodeRun::settled() const {
  Json json{{"mtu", mtu()}};
  if (facts(part_.plan.topology.transport).reliable) json.update(qps_.settled());
  return json;
}

}  // namespace verbscope
