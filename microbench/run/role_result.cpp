// What a role can say of its threads while they run and afterwards.
#include <algorithm>
#include <numeric>

#include "common/error.hpp"
#include "microbench/run/role.hpp"

namespace verbscope {

bool Role::active_ended() const {
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    if (workloads_[t]->active() && !tallies_[t].ended.load(std::memory_order_acquire)) return false;
  }
  return true;
}

bool Role::windows_opened() const {
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    if (workloads_[t]->counts() && !tallies_[t].window_opened.load(std::memory_order_acquire)) return false;
  }
  return true;
}

bool Role::windows_closed() const {
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    if (workloads_[t]->counts() && !tallies_[t].window_closed.load(std::memory_order_acquire)) return false;
  }
  return true;
}

bool Role::counts() const {
  return std::ranges::any_of(workloads_, [](const auto& workload) { return workload->counts(); });
}

std::uint64_t Role::received() const {
  std::uint64_t sum = 0;
  for (std::size_t t = 0; t < workloads_.size(); ++t) {
    if (!workloads_[t]->active()) sum += tallies_[t].done_ops.load(std::memory_order_relaxed);
  }
  return sum;
}

std::uint64_t Role::completed() const {
  std::uint64_t sum = 0;
  for (const ThreadTally& tally : tallies_) sum += tally.done_ops.load(std::memory_order_relaxed);
  return sum;
}

std::uint64_t Role::armed() const {
  std::uint64_t sum = 0;
  for (const ThreadTally& tally : tallies_) sum += tally.armed.load(std::memory_order_relaxed);
  return sum;
}

bool Role::sends() const {
  return std::ranges::any_of(workloads_, [](const auto& workload) { return workload->active(); });
}

std::uint64_t Role::sent_to(std::uint32_t node) const {
  std::uint64_t sum = 0;
  for (const auto& workload : workloads_) sum += workload->sent_to(node);
  return sum;
}

Delivery Role::delivery(std::uint64_t expected) const {
  Delivery sum{expected, 0, 0, 0};
  for (const auto& workload : workloads_) {
    sum += {0, workload->received(), workload->checked(), workload->wrong()};
  }
  return sum;
}

Json Role::results() const {
  std::vector<const Workload*> threads;
  for (const auto& workload : workloads_) threads.push_back(workload.get());
  return benchmark_.results(threads);
}

std::string Role::failure() const {
  for (std::size_t t = 0; t < tallies_.size(); ++t) {
    if (!tallies_[t].ended.load(std::memory_order_acquire)) continue;
    const EndKind kind = tallies_[t].end.kind;
    if (kind != EndKind::finished && kind != EndKind::gave_up) return describe_end(t, tallies_[t].end);
  }
  return "";
}

std::string Role::describe_end(std::size_t thread, const RunEnd& end) const {
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

ThreadResult Role::thread_result(std::size_t thread) const {
  const WindowBounds& sample = tallies_[thread].window;
  ThreadResult result;
  if (!tallies_[thread].window_closed.load(std::memory_order_acquire)) return result;
  result.window_ops = sample.end_ops - sample.begin_ops;
  result.begin = sample.begin;
  result.window = sample.end - sample.begin;
  if (result.window > Picos(0)) result.rate_mops = to_mops(Ops(result.window_ops), result.window);
  return result;
}

Json Role::describe() const {
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
