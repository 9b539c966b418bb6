// A node on its threads: how far they are while they run, and its report afterwards.
#include <algorithm>
#include <numeric>

#include "common/error.hpp"
#include "microbench/run/node_run.hpp"

namespace verbscope {

bool NodeRun::active_ended() const {
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    if (workloads_[t]->active() && !tallies_[t].ended.load(std::memory_order_acquire)) return false;
  }
  return true;
}

bool NodeRun::windows_opened() const {
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    if (workloads_[t]->counts() && !tallies_[t].window_opened.load(std::memory_order_acquire)) return false;
  }
  return true;
}

bool NodeRun::windows_closed() const {
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    if (workloads_[t]->counts() && !tallies_[t].window_closed.load(std::memory_order_acquire)) return false;
  }
  return true;
}

bool NodeRun::counts() const {
  return std::ranges::any_of(workloads_, [](const auto& workload) { return workload->counts(); });
}

std::uint64_t NodeRun::received() const {
  std::uint64_t sum = 0;
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    if (!workloads_[t]->active()) sum += tallies_[t].done_ops.load(std::memory_order_relaxed);
  }
  return sum;
}

std::uint64_t NodeRun::completed() const {
  std::uint64_t sum = 0;
  for (const ThreadTally& tally : tallies_) sum += tally.done_ops.load(std::memory_order_relaxed);
  return sum;
}

std::uint64_t NodeRun::armed() const {
  std::uint64_t sum = 0;
  for (const ThreadTally& tally : tallies_) sum += tally.armed.load(std::memory_order_relaxed);
  return sum;
}

bool NodeRun::sends() const {
  return std::ranges::any_of(workloads_, [](const auto& workload) { return workload->active(); });
}

std::uint64_t NodeRun::sent_to(std::uint32_t node) const {
  std::uint64_t sum = 0;
  for (const auto& workload : workloads_) sum += workload->sent_to(node);
  return sum;
}

std::string NodeRun::failure() const {
  for (std::size_t t = 0; t < tallies_.size(); ++t) {
    if (!tallies_[t].ended.load(std::memory_order_acquire)) continue;
    const EndKind kind = tallies_[t].end.kind;
    if (kind != EndKind::finished && kind != EndKind::gave_up) return describe_end(t, tallies_[t].end);
  }
  return "";
}

std::string NodeRun::describe_end(std::size_t thread, const RunEnd& end) const {
  const std::size_t qp = thread_qps_[thread].at(end.queue < thread_qps_[thread].size() ? end.queue : 0);
  std::string peer;
  if (lane_peers_[qp].size() == 1) {
    const LanePeer& lane = lane_peers_[qp].front();
    const std::string node = side_ == Side::server ? fmt::format("client{}", lane.node) : "server";
    peer = fmt::format(", peer {} QP 0x{:x}", node, lane.qp.qpn);
  }
  const std::string where = fmt::format("{}: thread {}, {} QP 0x{:x}{}", name_, thread,
                                        to_string(qp_plans_[qp].transport), qps_[qp].number(), peer);
  switch (end.kind) {
    case EndKind::completion_failed:
      return fmt::format("{}: completion with status {} ({}), vendor error 0x{:x}", where, end.code,
                         ibv_wc_status_str(static_cast<ibv_wc_status>(end.code)), end.vendor_error);
    case EndKind::post_failed:
      return fmt::format("{}: post: {}", where, errno_text(end.code));
    case EndKind::poll_failed:
      return fmt::format("{}: poll of the completion queue: {}", where, errno_text(end.code));
    case EndKind::finished:
    case EndKind::gave_up:
      break;
  }
  return where + ": gave up";
}

ThreadReport NodeRun::thread_report(std::size_t thread, int core) const {
  ThreadReport report{.core = core};
  const WindowBounds& bounds = tallies_[thread].window;
  const Picos window = bounds.end - bounds.begin;
  if (tallies_[thread].window_closed.load(std::memory_order_acquire)) {
    report.ops = bounds.end_ops - bounds.begin_ops;
    report.window_s = to_seconds(window);
    if (window > Picos(0)) report.rate_mops = to_mops(Ops(report.ops), window);
  }
  if (const std::uint64_t round = workloads_[thread]->round(); round > 0) {
    report.rounds = static_cast<double>(report.ops) / static_cast<double>(round);
  }
  return report;
}

void NodeRun::judge_thread(std::size_t thread, const ThreadReport& report, std::string& failure) const {
  if (!counted_ || !workloads_[thread]->counts() || report.rate_mops > 0 || !failure.empty()) return;
  const std::uint32_t step = plan_.operation.signal_every;
  failure = fmt::format("{}: thread {} completed no operation in the measured window: it needs a longer --duration{}",
                        name_, thread, step > 1 ? fmt::format(", or a --cq_mod under {}", step) : "");
}

Delivery NodeRun::delivery(std::uint64_t expected) const {
  Delivery sum{.expected = expected, .validated = plan_.operation.validate};
  for (const auto& workload : workloads_) {
    sum.received += workload->received();
    sum.validation.checked += workload->checked();
    sum.validation.wrong += workload->wrong();
  }
  return sum;
}

NodeReport NodeRun::report(const WindowUse& window, std::uint64_t expected, const std::vector<int>& cores,
                           std::string& failure) const {
  NodeReport report;
  report.node = name_;
  report.window_s = to_seconds(window.time);
  double rate = 0;
  std::uint64_t ops = 0;
  Picos begin = Picos::max(), end{0};
  std::vector<const Workload*> workloads;
  for (std::size_t t = 0; t < threads(); ++t) {
    const ThreadReport& thread = report.threads.emplace_back(thread_report(t, cores.at(t)));
    rate += thread.rate_mops;
    ops += thread.ops;
    if (thread.ops > 0) {
      begin = std::min(begin, tallies_[t].window.begin);
      end = std::max(end, tallies_[t].window.end);
    }
    judge_thread(t, thread, failure);
    workloads.push_back(workloads_[t].get());
  }
  std::optional<double> span_s;
  if (plan_.schedule.iters && ops > 0) span_s = to_seconds(end - begin);
  set_rate(report, rate, ops, span_s);
  report.findings = benchmark_.results(workloads);
  report.cpu = cpu_report(window);
  if (plan_.operation.events) report.cq_armings = window.armed;
  report.has_peers = !alone_;
  report.delivery = delivery(expected);
  return report;
}

Json NodeRun::describe() const {
  Json ports = Json::array();
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    ports.push_back(Json{{"port", ports_[i].port()}, {"address", gids_[i].why}});
  }
  Json memory = Json::array();
  for (const auto& workload : workloads_) {
    const std::string line = workload->memory();
    if (!line.empty() && (memory.empty() || memory.back() != line)) memory.push_back(line);
  }
  Json json{{"device", ports_.front().name()}, {"ports", ports}, {"path_mtu_bytes", mtu_}, {"buffers", memory}};
  if (region_) json["region"] = region_->describe();
  return json;
}

}  // namespace verbscope
