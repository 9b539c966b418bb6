#include "analysis/shape_loads.hpp"

#include <algorithm>
#include <string>

#include "analysis/points.hpp"

namespace verbscope {
namespace {

// A unit takes longer by about this factor for a WQE that it must fetch than for one received by BlueFlame: 1.4 to 1.9
// times on the profiles of the three adapters of ATC 2016, with one to three lines.
constexpr double kFetchedWqeFactor = 1.5;

double mmio_bytes(const Prediction& prediction) {
  const auto header = static_cast<double>(prediction.wire.pcie.request_header.value);
  const auto doorbell = static_cast<double>(prediction.wire.doorbell_bytes.value);
  return prediction.pcie.mmio_wc_lines * (static_cast<double>(kCacheLine.value) + header) +
         prediction.pcie.mmio_doorbells * (doorbell + header);
}

double bound_ratio(const Prediction& before, const Prediction& after, const std::string& resource) {
  const auto mops = [&](const Prediction& prediction) {
    const auto found = std::ranges::find(prediction.bounds, resource, &RateBound::resource);
    return found == prediction.bounds.end() ? 0 : found->mops;
  };
  return mops(before) > 0 && mops(after) > 0 ? mops(before) / mops(after) : 1;
}

bool by_blueflame(const Prediction& prediction) {
  return prediction.pcie.mmio_wc_lines > 0;
}

}  // namespace

// The link to the NIC carries DMA and MMIO writes, whose gaps the model does not include. Each is scaled separately.
double ShapeLoads::link_to_nic(const Prediction& after) const {
  const double rate = number_at(record_.result, "rate_mops").value_or(0) * 1e6;
  const double per_byte = rate / before_.wire.pcie.bandwidth().value;
  const auto scaled = [&](double load, double bytes_before, double bytes_after) {
    return std::max(load + (bytes_after - bytes_before) * per_byte, bytes_after * per_byte);
  };
  const double mmio = load_of(loads_.server, Resource::mmio);
  const double mmio_before = mmio_bytes(before_), mmio_after = mmio_bytes(after);
  const double mmio_load = mmio > 0 && mmio_before > 0 ? mmio * mmio_after / mmio_before : mmio_after * per_byte;
  const double dma = load_of(loads_.server, Resource::pcie_to_nic) - (loads_.measured ? mmio : mmio_before * per_byte);
  return mmio_load + scaled(dma, before_.pcie.bytes_to_nic - mmio_before, after.pcie.bytes_to_nic - mmio_after);
}

double ShapeLoads::after(const Load& load, const Prediction& after) const {
  switch (load.resource) {
    case Resource::mmio:
      return mmio_bytes(before_) > 0 ? load.utilisation * mmio_bytes(after) / mmio_bytes(before_) : 0;
    case Resource::pcie_to_nic:
      return link_to_nic(after);
    case Resource::pcie_to_host:
      return before_.pcie.bytes_to_host > 0 ? load.utilisation * after.pcie.bytes_to_host / before_.pcie.bytes_to_host
                                            : load.utilisation;
    case Resource::wire_out:
    case Resource::wire_in:
      return load.utilisation * bound_ratio(before_, after, std::string(to_string(load.resource)));
    case Resource::cpu: {
      const CpuCosts& costs = loads_.cpu_costs;
      return load.utilisation * cpu_cost_ns(after, costs) / cpu_cost_ns(before_, costs);
    }
    case Resource::requester_units:
    case Resource::requester_unit:
      return by_blueflame(before_) && !by_blueflame(after) ? load.utilisation * kFetchedWqeFactor : load.utilisation;
    case Resource::responder_units:
    case Resource::responder_unit:
    case Resource::dram:
    case Resource::workers:
    case Resource::driver_lock:
    case Resource::shared_line:
    case Resource::atomic_slot:
    case Resource::dma_reads:
    case Resource::wqe_fetch:
    case Resource::qp_context_cache:
    case Resource::translation_cache:
    case Resource::wqe_cache:
    case Resource::outstanding:
    case Resource::reads_outstanding:
    case Resource::pauses:
    case Resource::switch_buffer:
    case Resource::rate_control:
    case Resource::recv_queue:
    case Resource::credits:
    case Resource::rate_limiter:
    case Resource::timeouts:
    case Resource::switch_queue:
    case Resource::log_device:
      break;
  }
  return load.utilisation;
}

}  // namespace verbscope
