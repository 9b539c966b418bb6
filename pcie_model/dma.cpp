#include "pcie_model/dma.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace verbscope {
namespace {

// Number of aligned pieces of `size` bytes that overlap with `length` bytes at `address`.
std::uint64_t pieces_touched(std::uint64_t address, std::uint64_t length, std::uint64_t size) {
  return (address + length - 1) / size - address / size + 1;
}

std::uint64_t completions(const PcieLink& link, std::uint64_t address, std::uint64_t length) {
  std::uint64_t count = 0;
  for (std::uint64_t done = 0; done < length; done += link.mrrs.value) {
    count += pieces_touched(address + done, std::min(length - done, link.mrrs.value), link.rcb.value);
  }
  return count;
}

}  // namespace

PciePerOp dma_read(const PcieLink& link, std::uint64_t address, Bytes length) {
  PciePerOp cost;
  if (length.value == 0) return cost;
  const auto n = static_cast<double>(length.value);
  const auto requests = static_cast<double>(divide_up(length.value, link.mrrs.value));
  const auto replies = static_cast<double>(completions(link, address, length.value));
  cost.dma_read_lines = static_cast<double>(pieces_touched(address, length.value, kCacheLine.value));
  cost.tlps_to_host = requests;
  cost.bytes_to_host = requests * static_cast<double>(link.request_header.value);
  cost.tlps_to_nic = replies;
  cost.bytes_to_nic = n + replies * static_cast<double>(link.completion_header.value);
  cost.payload_bytes_to_nic = n;
  return cost;
}

PciePerOp dma_write(const PcieLink& link, std::uint64_t address, Bytes length) {
  PciePerOp cost;
  if (length.value == 0) return cost;
  const auto n = static_cast<double>(length.value);
  const auto requests = static_cast<double>(divide_up(length.value, link.mps.value));
  const std::uint64_t begin = divide_up(address, kCacheLine.value);
  const std::uint64_t end = (address + length.value) / kCacheLine.value;
  const std::uint64_t full = end > begin ? end - begin : 0;
  cost.dma_write_full_lines = static_cast<double>(full);
  cost.dma_write_partial_lines = static_cast<double>(pieces_touched(address, length.value, kCacheLine.value) - full);
  cost.tlps_to_host = requests;
  cost.bytes_to_host = n + requests * static_cast<double>(link.request_header.value);
  cost.payload_bytes_to_host = n;
  return cost;
}

PciePerOp mmio_lines(const PcieLink& link, int lines) {
  PciePerOp cost;
  cost.mmio_wc_lines = lines;
  cost.tlps_to_nic = lines;
  cost.payload_bytes_to_nic = lines * static_cast<double>(kCacheLine.value);
  cost.bytes_to_nic = lines * static_cast<double>(kCacheLine.value + link.request_header.value);
  return cost;
}

PciePerOp mmio_doorbell(const PcieLink& link, Bytes size) {
  PciePerOp cost;
  cost.mmio_doorbells = 1;
  cost.tlps_to_nic = 1;
  cost.payload_bytes_to_nic = static_cast<double>(size.value);
  cost.bytes_to_nic = static_cast<double>(size.value + link.request_header.value);
  return cost;
}

PciePerOp ring_read_mean(const PcieLink& link, Bytes ring, Bytes step, Bytes length) {
  // The starts modulo `ring` are exactly the multiples of the greatest common divisor, each equally often.
  const std::uint64_t spacing = std::gcd(ring.value, step.value);
  const auto weight = static_cast<double>(spacing) / static_cast<double>(ring.value);
  PciePerOp mean;
  // Reads that do not wrap have the same cost if their starts have the same offset from a multiple of RCB.
  const std::uint64_t whole = (ring.value - length.value) / spacing + 1;
  const std::uint64_t period = link.rcb.value / std::gcd(spacing, link.rcb.value);
  for (std::uint64_t i = 0; i < std::min(period, whole); ++i) {
    const auto alike = static_cast<double>(divide_up(whole - i, period));
    add_weighted(mean, dma_read(link, i * spacing, length), alike * weight);
  }
  for (std::uint64_t start = whole * spacing; start < ring.value; start += spacing) {
    const Bytes before_end(ring.value - start);
    add_weighted(mean, dma_read(link, start, before_end), weight);
    add_weighted(mean, dma_read(link, 0, length - before_end), weight);
  }
  return mean;
}

void add_weighted(PciePerOp& sum, const PciePerOp& part, double weight) {
  std::array<const double*, sizeof(PciePerOp) / sizeof(double)> parts{};
  std::size_t next = 0;
  PciePerOp::each(part, [&](const char*, const double& value) { parts[next++] = &value; });
  next = 0;
  PciePerOp::each(sum, [&](const char*, double& value) { value += weight * *parts[next++]; });
}

}  // namespace verbscope
