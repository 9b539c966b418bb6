#include "microbench/run/node_run.hpp"

#include <algorithm>
#include <limits>

#include "common/error.hpp"

namespace verbscope {

namespace {

std::vector<std::vector<std::size_t>> qps_by_thread(const std::vector<QpPlan>& qps) {
  std::vector<std::vector<std::size_t>> threads(used_threads(qps));
  for (std::size_t i = 0; i < qps.size(); ++i) threads[qps[i].thread].push_back(i);
  return threads;
}

int checked_count(std::uint64_t count, const char* what) {
  if (count > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) fail("{} {}: too many", count, what);
  return static_cast<int>(count);
}

}  // namespace

NodeRun::NodeRun(const Benchmark& benchmark, const Plan& plan, Side side, std::uint32_t client, const NodePlace& place)
    : benchmark_(benchmark),
      plan_(plan),
      side_(side),
      node_(client),
      counted_(benchmark.traffic().counted == side),
      alone_(place.alone),
      name_(side == Side::server ? "server" : fmt::format("client{}", client)),
      huge_pages_(place.huge_pages),
      qp_plans_(plan_qps(plan.topology, side, client)),
      thread_qps_(qps_by_thread(qp_plans_)),
      tallies_(thread_qps_.size()) {
  open_ports(place);
  pd_.emplace(ports_.front());
  create_region();
  create_queues();
}

void NodeRun::open_ports(const NodePlace& place) {
  for (const int port : place.ports) {
    const Device& device = ports_.emplace_back(*place.provider, fmt::format("{}:{}", place.device, port));
    gids_.push_back(choose_gid(device, place.gid_index));
    const auto active = static_cast<std::uint32_t>(mtu_bytes(device.port_attributes().active_mtu));
    if (place.mtu && *place.mtu > active) {
      fail_usage("--mtu {} is over the active MTU of {}:{}, which is {}", *place.mtu, device.name(), port, active);
    }
    mtu_ = mtu_ == 0 ? place.mtu.value_or(active) : std::min(mtu_, place.mtu.value_or(active));
  }
  check_datagram_size(mtu_);
}

void NodeRun::check_datagram_size(std::uint32_t mtu) const {
  const Operation& op = plan_.operation;
  std::vector<Transport> used;
  for (const QpPlan& plan : qp_plans_) used.push_back(plan.transport);
  if (const std::optional<Transport> companion = benchmark_.companion(op)) used.push_back(*companion);
  for (const Transport transport : used) {
    if (!facts(transport).one_packet || op.payload <= mtu) continue;
    fail_usage("--size {} is over the MTU of {} bytes, which limits a {} message", op.payload, mtu,
               to_string(transport));
  }
}

void NodeRun::create_region() {
  const Operation& op = plan_.operation;
  const auto datagram = [](const QpPlan& plan) { return !facts(plan.transport).connected; };
  const auto extra = plan_.topology.client_qps ? std::ranges::count_if(qp_plans_, datagram) : 0;
  const auto qps = static_cast<std::uint32_t>(qp_plans_.size() - static_cast<std::size_t>(extra));
  RegionNeeds needs = benchmark_.region(op, side_, qps);
  if (alone_ && needs.bytes == 0) needs = benchmark_.region(op, Side::client, qps);
  access_ = needs.bytes > 0 ? needs.access : IBV_ACCESS_LOCAL_WRITE;
  if ((access_ & IBV_ACCESS_REMOTE_ATOMIC) != 0 && device().attributes().atomic_cap == IBV_ATOMIC_NONE) {
    fail("not supported by {}: atomics", device().name());
  }
  if (needs.bytes == 0) return;
  if (huge_pages_) {
    region_.emplace(Bytes(needs.bytes), needs.huge_pages ? PageSize::mb2 : PageSize::kb4);
  } else {
    region_.emplace(Bytes(needs.bytes), false);  // a simulated adapter is told by the registration alone
  }
  benchmark_.fill(op, side_, region_->bytes());
  const int pages = needs.huge_pages ? int{IBV_ACCESS_HUGETLB} : 0;
  region_mr_.emplace(*pd_, region_->data(), region_->size(), needs.access | pages);
}

void NodeRun::create_queues() {
  const Operation& op = plan_.operation;
  const std::optional<Transport> companion = benchmark_.companion(op);
  const std::uint64_t per_lane = companion ? 2 : 1;
  set_inline_recv(device(), op.inline_recv);  // with 0 too: an adapter may do it unasked
  const auto offered = static_cast<std::uint64_t>(std::max(device().attributes().max_cqe, 1));
  for (const std::vector<std::size_t>& of_thread : thread_qps_) {
    // Room for every request to fail, where the device has it; never less than a good run needs.
    std::uint64_t wanted = 0, needed = 0;
    QueueNeeds needs;
    for (const std::size_t qp : of_thread) {
      needs = needs_of(qp_plans_[qp]);
      const bool counts = !op.shared_recv_queue || qp == of_thread.front();
      const std::uint64_t recv_queues = !counts ? 0 : op.shared_recv_queue ? 1 : per_lane;
      wanted += per_lane * needs.send_depth + recv_queues * needs.recv_depth;
      needed += recv_queues * needs.completions;
    }
    if (op.events) channels_.emplace_back(device());
    cqs_.emplace_back(device(), checked_count(std::max(std::min(wanted, offered), needed), "completions"),
                      op.events ? channels_.back().get() : nullptr);
    if (op.shared_recv_queue) {
      srqs_.emplace_back(*pd_, static_cast<int>(needs.recv_depth), static_cast<int>(needs.recv_sge));
    }
  }
  for (const QpPlan& plan : qp_plans_) create_qp(plan, plan.transport);
  if (!companion) return;
  for (const QpPlan& plan : qp_plans_) create_qp(plan, *companion);
}

QueueNeeds NodeRun::needs_of(const QpPlan& plan) const {
  const bool extra = plan_.topology.client_qps && !facts(plan.transport).connected;
  return extra ? benchmark_.datagram_needs(plan_.operation, side_) : benchmark_.needs(plan_.operation, side_);
}

void NodeRun::create_qp(const QpPlan& plan, Transport transport) {
  const QueueNeeds needs = needs_of(plan);
  QpOptions options;
  options.transport = transport;
  options.send_cq = options.recv_cq = cqs_[plan.thread].get();
  options.send_depth = static_cast<int>(needs.send_depth);
  options.recv_depth = static_cast<int>(needs.recv_depth);
  options.send_sge = static_cast<int>(needs.send_sge);
  options.recv_sge = static_cast<int>(needs.recv_sge);
  options.max_inline = static_cast<int>(needs.inline_bytes);
  options.srq = srqs_.empty() ? nullptr : srqs_[plan.thread].get();
  options.builder = plan_.operation.builder;
  QpInit init;
  init.port = ports_[plan.port].port();
  init.access = access_;
  qps_.emplace_back(*pd_, options).to_init(init);
}

}  // namespace verbscope
