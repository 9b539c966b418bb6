#include "pcie_model/rates.hpp"

#include "common/error.hpp"
#include "pcie_model/costs.hpp"

namespace verbscope {

namespace {

// Useful bandwidth of DMA reads: bandwidth * RCB / (RCB + completion header), as in section 5.2.1 of Kalia et al., ATC
// 2016.
BytesPerSecond dma_read_bandwidth(const PcieLink& link) {
  const auto rcb = static_cast<double>(link.rcb.value);
  return BytesPerSecond{link.bandwidth().value * rcb / (rcb + static_cast<double>(link.completion_header.value))};
}

// Write-combined lines per second: bandwidth / (64 + request header), from the same section.
double mmio_lines_per_second(const PcieLink& link) {
  return link.bandwidth().value / static_cast<double>(kCacheLine.value + link.request_header.value);
}

}  // namespace

void set_bounds(Prediction& prediction, const ClusterWire& cluster, const ResourceUse& use) {
  const auto add = [&](const char* resource, double per_second, double per_op) {
    if (per_op > 0) prediction.bounds.push_back({resource, per_second / per_op * 1e-6});
  };
  const double link = cluster.pcie.bandwidth().value;
  const double wire = cluster.port_rate.value * prediction.shape.ports_used.value_or(cluster.ports);
  const bool blueflame = prediction.method == PostMethod::blueflame;
  add("mmio", mmio_lines_per_second(cluster.pcie), blueflame ? prediction.wqe_lines : 0);
  add("dma_read", dma_read_bandwidth(cluster.pcie).value, use.dma_read_bytes);
  add("pcie_to_nic", link, prediction.pcie.bytes_to_nic);
  add("pcie_to_host", link, prediction.pcie.bytes_to_host);
  add("wire_out", wire, static_cast<double>(use.wire_out.value));
  add("wire_in", wire, static_cast<double>(use.wire_in.value));

  set_binding(prediction);
}

void set_binding(Prediction& prediction) {
  // Bounds may differ by rounding only (mmio and pcie_to_nic of an inline BlueFlame post). Then the first one is
  // chosen, which is more specific.
  const RateBound* smallest = &prediction.bounds.front();
  for (const RateBound& bound : prediction.bounds) {
    if (bound.mops < smallest->mops * (1 - 1e-9)) smallest = &bound;
  }
  prediction.binding = smallest->resource;
  prediction.bound_mops = smallest->mops;
}

WqePrediction predict_wqes(const ClusterWire& cluster, Bytes wqe_bytes, int wqes) {
  constexpr std::uint64_t kLargestWqe = 1024;
  constexpr int kMaxWqes = 32768;
  if (wqe_bytes.value < 1 || wqe_bytes.value > kLargestWqe) {
    fail("WQE size {} B: must be from 1 to {} B", wqe_bytes.value, kLargestWqe);
  }
  if (wqes < 1 || wqes > kMaxWqes) fail("number of WQEs {}: must be from 1 to {}", wqes, kMaxWqes);
  const PcieLink& link = cluster.pcie;
  const auto count = static_cast<std::uint64_t>(wqes);
  const std::uint64_t lines = divide_up(wqe_bytes.value, kCacheLine.value);
  const Bytes slot = kCacheLine * lines;

  WqePrediction out;
  out.cluster = cluster.name;
  out.wqe_bytes = wqe_bytes;
  out.wqes = wqes;
  out.lines_per_wqe = static_cast<int>(lines);
  out.mmio_bytes_to_nic = (kCacheLine + link.request_header) * (count * lines);
  const PciePerOp read = dma_read(link, 0, slot * count);
  out.doorbell_bytes_to_nic =
      cluster.doorbell_bytes + link.request_header + Bytes(static_cast<std::uint64_t>(read.bytes_to_nic));
  out.dma_read_mb_per_s = dma_read_bandwidth(link).value * 1e-6;
  out.mmio_lines_per_us = mmio_lines_per_second(link) * 1e-6;
  out.dma_read_limit_mops = out.dma_read_mb_per_s / static_cast<double>(slot.value);
  out.mmio_limit_mops = out.mmio_lines_per_us / static_cast<double>(lines);
  return out;
}

}  // namespace verbscope
