#include "pcie_model/costs.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "common/error.hpp"
#include "wire/packet.hpp"

namespace verbscope {

namespace {

// Bytes of a WQE that precede its data.
std::uint64_t fixed_bytes(const WqeLayout& layout) {
  return (layout.control + layout.address + layout.remote_address + layout.atomic).value;
}

std::uint64_t inline_chunks(std::uint64_t fixed, std::uint64_t payload, std::uint64_t boundary) {
  if (boundary == 0) return 1;
  const std::uint64_t first = boundary - kInlineHeader.value - fixed % boundary;
  if (payload <= first) return 1;
  return 1 + divide_up(payload - first, boundary - kInlineHeader.value);
}

std::uint64_t packet_count(Bytes payload, Bytes mtu) {
  return std::max<std::uint64_t>(1, divide_up(payload.value, mtu.value));
}

// Full packets need no padding, since an MTU is a multiple of 4.
std::uint64_t padded(Bytes payload) {
  return round_up(payload.value, kPayloadPad.value);
}

// Bytes of `packets` packets with `content` bytes in total, plus what the link adds to each. Only a single packet can
// be shorter than the smallest frame: a last packet has at least 4 bytes of content.
Bytes occupied(LinkType link, std::uint64_t packets, std::uint64_t content) {
  const LinkFacts& added = facts(link);
  const std::uint64_t frames = packets * added.overhead.value + content;
  return Bytes(std::max(frames, added.min_frame.value) + packets * added.gap.value);
}

// Number of aligned pieces of `size` bytes that overlap with `length` bytes at `address`.
std::uint64_t pieces_touched(std::uint64_t address, std::uint64_t length, std::uint64_t size) {
  return (address + length - 1) / size - address / size + 1;
}

std::uint64_t completions(const PcieLink& link, std::uint64_t address, std::uint64_t length) {
  std::uint64_t count = 0;
  for (std::uint64_t done = 0; done < length; done += link.mrrs.value) {
    const std::uint64_t before = (address + done) % link.rcb.value;  // the first completion is shorter by these bytes
    count += divide_up(before + std::min(length - done, link.mrrs.value), link.completion.value);
  }
  return count;
}

}  // namespace

WqeSize wqe_size(NicFamily family, Verb verb, Transport transport, Bytes payload, bool inlined) {
  if (!facts(transport).verbs.has(verb)) {
    fail("transport {} does not support {}", to_string(transport), to_string(verb));
  }
  if (inlined && !facts(verb).may_inline)
    fail("{} cannot have an inline payload; only send and write can", to_string(verb));
  std::uint64_t used = fixed_bytes(wqe_layout(transport, verb));
  if (payload.value > 0) {
    if (inlined) {
      const std::uint64_t boundary = facts(family).inline_boundary.value;
      used += payload.value + kInlineHeader.value * inline_chunks(used, payload.value, boundary);
    } else {
      used += kDataSegment.value;
    }
  }
  return {Bytes(used), Bytes(round_up(used, kWqeUnit.value))};
}

SendQueueLayout send_queue_layout(NicFamily family, Transport transport, WqeSize wqe, Bytes max_inline, bool has_sge,
                                  int depth) {
  const auto slots = static_cast<std::uint64_t>(depth);
  if (!facts(family).fixed_slots) {
    const auto blocks = static_cast<std::uint64_t>(wqe.lines());
    return {kWqeBlock * blocks, kWqeBlock * std::bit_ceil(slots * blocks)};
  }
  const Verb largest = facts(transport).verbs.has(Verb::write) ? Verb::write : Verb::send;
  const WqeSize inlined = wqe_size(family, largest, transport, max_inline, true);
  const WqeSize gathered = wqe_size(family, largest, transport, Bytes(has_sge ? 1 : 0), false);
  const std::uint64_t stride = std::bit_ceil(std::max({kWqeBlock.value, inlined.padded.value, gathered.padded.value}));
  return {Bytes(stride), Bytes(stride * std::bit_ceil(slots))};
}

Bytes request_bytes(Verb verb, Transport transport, Bytes payload, bool immediate, Bytes mtu, LinkType link) {
  const Bytes carried = facts(verb).carries_payload ? payload : Bytes(0);
  const std::uint64_t packets = packet_count(carried, mtu);
  const std::uint64_t once = facts(verb).request_header.value + (immediate ? kImmDt.value : 0);
  return occupied(link, packets, packets * facts(transport).packet_header.value + once + padded(carried));
}

Bytes response_bytes(Verb verb, Bytes payload, Bytes mtu, LinkType link) {
  if (!facts(verb).wants_response) return Bytes(0);
  const Bytes carried = facts(verb).atomic ? Bytes(0) : payload;  // an atomic's data is in its extension header
  const std::uint64_t packets = packet_count(carried, mtu);
  const std::uint64_t once = std::min<std::uint64_t>(packets, 2) * kAeth.value + facts(verb).response_header.value;
  return occupied(link, packets, once + padded(carried));
}

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

}  // namespace verbscope
