#include "pcie_model/together.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "pcie_model/dma.hpp"
#include "pcie_model/rates.hpp"
#include "wire/event.hpp"

namespace verbscope {

namespace {

void add_weighted(CpuStores& to, const CpuStores& what, double weight) {
  to.ring_bytes += weight * what.ring_bytes;
  to.record_bytes += weight * what.record_bytes;
  to.mmio_bytes += weight * what.mmio_bytes;
  to.stores += weight * what.stores;
}

struct ResourceTime {
  std::string resource;
  double us = 0;  // per operation
};

std::vector<ResourceTime> times_of(const std::vector<PredictedPart>& parts) {
  std::vector<ResourceTime> times;
  for (const PredictedPart& part : parts) {
    if (part.per_op == 0) continue;
    for (const RateBound& bound : part.prediction.bounds) {
      auto known = std::ranges::find(times, bound.resource, &ResourceTime::resource);
      if (known == times.end()) known = times.insert(times.end(), {bound.resource, 0});
      known->us += part.per_op / bound.mops;
    }
  }
  return times;
}

}  // namespace

Prediction predict_together(const std::string& role, const std::vector<PredictedPart>& parts) {
  if (parts.empty()) fail("a prediction of no parts");
  Prediction out = parts.front().prediction;
  out.role = role;
  out.pcie = {};
  out.cpu = {};
  out.bounds.clear();
  for (const PredictedPart& part : parts) {
    if (!(part.per_op >= 0)) fail("a part is taken {} times an operation", part.per_op);
    add_weighted(out.pcie, part.prediction.pcie, part.per_op);
    add_weighted(out.cpu, part.prediction.cpu, part.per_op);
  }
  for (const ResourceTime& time : times_of(parts)) out.bounds.push_back({time.resource, 1 / time.us});
  if (out.bounds.empty()) fail("a prediction of parts that are never taken");
  set_binding(out);
  return out;
}

Prediction with_completion_events(const Prediction& prediction, double per_op) {
  const PcieLink& link = prediction.wire.pcie;
  Prediction event;
  add_weighted(event.pcie, mmio_doorbell(link, kArmDoorbell), 1);
  add_weighted(event.pcie, dma_write(link, 0, kEventQueueEntry), 1);
  add_weighted(event.pcie, dma_write(link, 0, kInterruptMessage), 1);
  event.cpu.mmio_bytes = static_cast<double>(kArmDoorbell.value);
  event.cpu.stores = 1;
  set_bounds(event, prediction.wire, {});
  Prediction out = predict_together(prediction.role, {{prediction}, {event, per_op}});
  out.shape.events = per_op;
  return out;
}

}  // namespace verbscope
