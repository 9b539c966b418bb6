#include "microbench/run/node_device.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace verbscope {

NodeDevice::NodeDevice(const NodePart& part, const NodePlace& place)
    : part_(part), ports_(part, place), pd_(ports_.device()) {
  create_region();
}

void NodeDevice::create_region() {
  const Operation& op = part_.plan.operation;
  const auto datagram = [](const QpPlan& plan) { return !facts(plan.transport).connected; };
  const auto extra = part_.plan.topology.client_qps ? std::ranges::count_if(part_.qps, datagram) : 0;
  const auto qps = static_cast<std::uint32_t>(part_.qps.size() - static_cast<std::size_t>(extra));
  RegionNeeds needs = part_.benchmark.region(op, part_.side, qps);
  if (part_.alone && needs.bytes == 0) needs = part_.benchmark.region(op, Side::client, qps);
  access_ = needs.bytes > 0 ? needs.access & ~int{IBV_ACCESS_RELAXED_ORDERING} : IBV_ACCESS_LOCAL_WRITE;
  region_relaxed_ = needs.bytes > 0 && needs.access != access_;
  if ((access_ & IBV_ACCESS_REMOTE_ATOMIC) != 0 && device().attributes().atomic_cap == IBV_ATOMIC_NONE) {
    fail("not supported by {}: atomics", device().name());
  }
  if (needs.bytes == 0) return;
  if (part_.huge_pages) {
    region_.emplace(Bytes(needs.bytes), needs.huge_pages ? PageSize::mb2 : PageSize::kb4);
  } else {
    region_.emplace(Bytes(needs.bytes), false);  // a simulated adapter is told by the registration alone
  }
  part_.benchmark.fill(op, part_.side, region_->bytes());
  const int pages = needs.huge_pages ? int{IBV_ACCESS_HUGETLB} : 0;
  region_mr_.emplace(pd_, region_->data(), region_->size(), needs.access | pages);
}

LocalRegion NodeDevice::region() const {
  return region_ ? LocalRegion{region_->bytes(), region_mr_->lkey()} : LocalRegion{};
}

RemoteRegion NodeDevice::shared_region() const {
  if (!region_) return {};
  return {reinterpret_cast<std::uint64_t>(region_->data()), region_->size(), region_mr_->rkey()};
}

}  // namespace verbscope
