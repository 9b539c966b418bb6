#include "drivers_patch/cost.hpp"

#include <algorithm>
#include <bit>

#include "wire/doorbell.hpp"
#include "wire/wqe.hpp"

namespace verbscope::driver {
namespace {

std::uint64_t pieces(std::uint64_t address, std::uint64_t length, std::uint64_t size) {
  return (address + length - 1) / size - address / size + 1;
}

void to_nic(std::uint64_t tlps, std::uint64_t header, std::uint64_t payload, PcieCounts& counts) {
  counts.tlps_to_nic += tlps;
  counts.bytes_to_nic += tlps * header + payload;
  counts.payload_bytes_to_nic += payload;
}

void to_host(std::uint64_t tlps, std::uint64_t header, std::uint64_t payload, PcieCounts& counts) {
  counts.tlps_to_host += tlps;
  counts.bytes_to_host += tlps * header + payload;
  counts.payload_bytes_to_host += payload;
}

// Adds `weight` DMA reads, split into read requests.
void read(const PcieLink& link, std::uint64_t address, std::uint64_t length, std::uint64_t weight, PcieCounts& counts) {
  if (length == 0) return;
  counts.dma_read_lines += weight * pieces(address, length, kCacheLine.value);
  while (length > 0) {
    const std::uint64_t part = std::min(length, link.mrrs.value);
    to_host(weight, link.request_header.value, 0, counts);
    const std::uint64_t completions = divide_up(address % link.rcb.value + part, link.completion.value);
    to_nic(weight * completions, link.completion_header.value, weight * part, counts);
    address += part;
    length -= part;
  }
}

// Adds `weight` DMA writes.
void write(const PcieLink& link, std::uint64_t address, std::uint64_t length, std::uint64_t weight,
           PcieCounts& counts) {
  if (length == 0) return;
  const std::uint64_t line = kCacheLine.value;
  const std::uint64_t begin = divide_up(address, line), end = (address + length) / line;
  const std::uint64_t full = end > begin ? end - begin : 0;
  counts.dma_write_full_lines += weight * full;
  counts.dma_write_partial_lines += weight * (pieces(address, length, line) - full);
  to_host(weight * divide_up(length, link.mps.value), link.request_header.value, weight * length, counts);
}

// For writes at an unknown address: the fewest possible lines of either kind (fewest full lines if the bytes do not
// begin at a line, fewest partial lines if they do), and the most.
void write_fewest(const PcieLink& link, std::uint64_t, std::uint64_t length, std::uint64_t weight, PcieCounts& counts) {
  if (length == 0) return;
  const std::uint64_t line = kCacheLine.value;
  counts.dma_write_full_lines += weight * (std::max((length + 1) / line, std::uint64_t{1}) - 1);
  counts.dma_write_partial_lines += weight * (length % line == 0 ? 0 : 1);
  to_host(weight * divide_up(length, link.mps.value), link.request_header.value, weight * length, counts);
}
void write_most(const PcieLink& link, std::uint64_t, std::uint64_t length, std::uint64_t weight, PcieCounts& counts) {
  if (length == 0) return;
  counts.dma_write_full_lines += weight * (length / kCacheLine.value);
  counts.dma_write_partial_lines += weight * std::min<std::uint64_t>(length, 2);
  to_host(weight * divide_up(length, link.mps.value), link.request_header.value, weight * length, counts);
}

void mmio_doorbell(const WireFacts& wire, Bytes size, std::uint64_t weight, PcieCounts& counts) {
  counts.mmio_doorbells += weight;
  to_nic(weight, wire.pcie.request_header.value, weight * size.value, counts);
}

using Transfer = void (*)(const PcieLink&, std::uint64_t, std::uint64_t, std::uint64_t, PcieCounts&);

// A payload crosses the link packet by packet, and each element of a packet separately. The offset is the same in all
// packets, since an MTU is a multiple of RCB.
void by_packets(Transfer transfer, const WireFacts& wire, const QpFacts& qp, const Request& request,
                std::uint64_t weight, PcieCounts& counts) {
  const std::uint64_t mtu = qp.mtu;
  if (request.gather.empty()) {
    transfer(wire.pcie, request.offset, std::min(mtu, request.length), weight * (request.length / mtu), counts);
    transfer(wire.pcie, request.offset, request.length % mtu, weight, counts);
    return;
  }
  std::uint64_t room = mtu;
  for (const ibv_sge& element : request.gather) {
    std::uint64_t address = element.addr, left = element.length;
    while (left > 0) {
      const std::uint64_t part = std::min(left, room);
      transfer(wire.pcie, address, part, weight, counts);
      address += part;
      left -= part;
      room = room == part ? mtu : room - part;
    }
  }
}

std::uint64_t fixed_bytes(Transport transport, Verb verb) {
  const WqeLayout layout = wqe_layout(transport, verb);
  return (layout.control + layout.address + layout.remote_address + layout.atomic).value;
}

// The size of segments and inline chunks, in whole units.
std::uint64_t wqe_bytes(NicFamily family, std::uint64_t fixed, std::uint64_t inline_data, std::uint64_t elements) {
  std::uint64_t size = fixed + elements * kDataSegment.value;
  const std::uint64_t boundary = facts(family).inline_boundary.value;
  while (inline_data > 0) {
    size += kInlineHeader.value;
    const std::uint64_t chunk = boundary == 0 ? inline_data : std::min(inline_data, boundary - size % boundary);
    size += chunk;
    inline_data -= chunk;
  }
  return round_up(size, kWqeUnit.value);
}

std::uint64_t data_segments(NicFamily family, const Request& request) {
  if (facts(family).writes_empty_elements) return request.elements;
  if (request.gather.empty()) return request.length > 0 ? request.elements : 0;
  const auto has_bytes = [](const ibv_sge& element) { return element.length > 0; };
  return static_cast<std::uint64_t>(std::ranges::count_if(request.gather, has_bytes));
}

// Adds the DMA write of a READ's or atomic's result. A result small enough for the CQE may be written there instead,
// depending on how the QP was created.
void add_response(const WireFacts& wire, const QpFacts& qp, Transport transport, Verb verb, const Request& request,
                  std::uint64_t weight, PcieCost& cost) {
  const InlineReceiveRoom room = inline_receive_room(wire.family, transport, verb, wire.cqe);
  const bool maybe_in_cqe = room.place == InlineReceive::in_cqe && request.length <= room.max_payload.value;
  by_packets(write, wire, qp, request, weight, maybe_in_cqe ? cost.most : cost.exact);
}

// Adds the most WQE reads possible: one unless it went by BlueFlame, one if it was evicted before it was sent, and one
// if it was evicted before its response.
void add_wqe_reads(const WireFacts& wire, Verb verb, bool blueflame, std::uint64_t bytes, std::uint64_t weight,
                   PcieCost& cost) {
  const std::uint64_t times = 1u + (facts(verb).wants_response ? 1 : 0) + (blueflame ? 0 : 1);
  // The worst alignment: one cache line before a multiple of RCB.
  read(wire.pcie, wire.pcie.rcb.value - kCacheLine.value, bytes, times * weight, cost.most);
}

void add_wqe(const WireFacts& wire, const QpFacts& qp, const Request& request, Transport transport, Verb verb,
             std::uint64_t weight, SendTotals& totals) {
  const bool inlined = (request.flags & IBV_SEND_INLINE) != 0;
  const std::uint64_t size = wqe_bytes(wire.family, fixed_bytes(transport, verb), inlined ? request.length : 0,
                                       inlined ? 0 : data_segments(wire.family, request));
  const std::uint64_t blocks = divide_up(size, kWqeBlock.value);
  totals.wqe_bytes += weight * size;
  totals.wqe_blocks += weight * blocks;
  const Post post{.verb = verb,
                  .payload = Bytes(request.length),
                  .inlined = inlined,
                  .size = Bytes(size),
                  .list = request.alone ? 1u : 2u};
  const bool blueflame = goes_by_blueflame(wire.family, wire.blueflame_max, post);
  if (blueflame) {
    totals.blueflames += weight;
    totals.pcie.exact.mmio_wc_lines += weight * blocks;
    to_nic(weight * blocks, wire.pcie.request_header.value, weight * blocks * kCacheLine.value, totals.pcie.exact);
  } else {
    totals.doorbell_blocks += weight * blocks;
  }
  add_wqe_reads(wire, verb, blueflame, blocks * kWqeBlock.value, weight, totals.pcie);
  if (facts(verb).carries_payload && !inlined) by_packets(read, wire, qp, request, weight, totals.pcie.exact);
  if (facts(verb).wants_response) add_response(wire, qp, transport, verb, request, weight, totals.pcie);
}

}  // namespace

std::optional<Verb> verb_of_opcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
      return Verb::send;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return Verb::write;
    case IBV_WR_RDMA_READ:
      return Verb::read;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return Verb::compare_swap;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return Verb::fetch_add;
    default:
      return std::nullopt;
  }
}

std::optional<Transport> transport_of_type(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return Transport::rc;
    case IBV_QPT_UC:
      return Transport::uc;
    case IBV_QPT_UD:
      return Transport::ud;
    default:
      return std::nullopt;
  }
}

WireFacts usual_facts(NicFamily family, bool computed) {
  constexpr PcieGeneration kGeneration = kPcieGenerations[2];
  return {.known = true,
          .family = family,
          .computed = computed,
          .recv_prefetch = 8,
          .pcie = {.generation = kGeneration.generation,
                   .lanes = 8,
                   .lane_mb_per_s = kGeneration.lane_mb_per_s,
                   .request_header = kGeneration.request_header,
                   .completion_header = kGeneration.completion_header,
                   .mps = Bytes(256),
                   .mrrs = Bytes(512),
                   .rcb = Bytes(64),
                   .completion = Bytes(64)},
          .blueflame_max = facts(family).blueflame_max,
          .doorbell = facts(family).doorbell,
          .cqe = facts(family).cqe};
}

void add_request(const WireFacts& wire, const QpFacts& qp, const Request& request, std::uint64_t weight,
                 SendTotals& totals) {
  const bool inlined = (request.flags & IBV_SEND_INLINE) != 0;
  const std::size_t opcode = std::min<std::size_t>(request.opcode, kOpcodes - 1);
  totals.by_opcode[opcode] += weight;
  totals.bytes_by_opcode[opcode] += weight * request.length;
  totals.by_size[std::min<std::size_t>(std::bit_width(request.length), kSizeClasses - 1)] += weight;
  if (inlined) totals.inlined += weight;
  if (qp.signal_all || (request.flags & IBV_SEND_SIGNALED) != 0) totals.signaled += weight;
  if ((request.flags & IBV_SEND_FENCE) != 0) totals.fenced += weight;
  totals.elements += weight * request.elements;
  totals.payload_bytes += weight * request.length;
  if (inlined) totals.inline_bytes += weight * request.length;
  if (request.alone) totals.alone += weight;
  const std::optional<Verb> verb = verb_of_opcode(request.opcode);
  const std::optional<Transport> transport = transport_of_type(qp.type);
  if (wire.known && verb && transport && facts(*transport).verbs.has(*verb)) {
    add_wqe(wire, qp, request, *transport, *verb, weight, totals);
  }
}

void add_doorbells(const WireFacts& wire, std::uint64_t lists, std::uint64_t blocks, PcieCost& cost) {
  if (!wire.known) return;
  const std::uint64_t bytes = blocks * kWqeBlock.value;
  mmio_doorbell(wire, wire.doorbell, lists, cost.exact);
  cost.least.dma_read_lines += blocks;
  to_host(std::max(lists, divide_up(bytes, wire.pcie.mrrs.value)), wire.pcie.request_header.value, 0, cost.least);
  to_nic(std::max(lists, divide_up(bytes, wire.pcie.completion.value)), wire.pcie.completion_header.value, bytes,
         cost.least);
}

void add_armings(const WireFacts& wire, std::uint64_t armings, PcieCost& cost) {
  if (!wire.known) return;
  mmio_doorbell(wire, kArmDoorbell, armings, cost.exact);
}

void add_cqes(const WireFacts& wire, std::uint64_t cqes, PcieCost& cost) {
  if (!wire.known) return;
  write(wire.pcie, 0, wire.cqe.value, cqes, cost.exact);
}

void add_recvs(const WireFacts& wire, Bytes stride, std::uint64_t posted, std::uint64_t completed, PcieCost& cost) {
  if (!wire.known) return;
  const std::uint64_t bytes = completed * stride.value, reads = divide_up(completed, wire.recv_prefetch);
  cost.least.dma_read_lines += divide_up(bytes, kCacheLine.value);
  to_host(std::max(reads, divide_up(bytes, wire.pcie.mrrs.value)), wire.pcie.request_header.value, 0, cost.least);
  to_nic(std::max(reads, divide_up(bytes, wire.pcie.completion.value)), wire.pcie.completion_header.value, bytes,
         cost.least);
  read(wire.pcie, 0, stride.value, std::max(posted, completed), cost.most);
}

void add_received(const WireFacts& wire, const QpFacts& qp, std::uint64_t length, bool in_memory, std::uint64_t weight,
                  ReceiveTotals& totals) {
  totals.completions += weight;
  if (!in_memory || length == 0) return;
  totals.payload_bytes += weight * length;
  if (!wire.known) return;
  const std::optional<Transport> transport = transport_of_type(qp.type);
  const InlineReceiveRoom room =
      transport ? inline_receive_room(wire.family, *transport, Verb::send, wire.cqe) : InlineReceiveRoom{};
  const std::uint64_t grh = transport ? facts(*transport).grh_room : 0;
  // The area of the GRH may stay unwritten.
  const std::uint64_t least = length > grh ? length - grh : 0;
  if (length > room.max_payload.value) by_packets(write_fewest, wire, qp, {.length = least}, weight, totals.pcie.least);
  by_packets(write_most, wire, qp, {.length = length - std::min(length, grh)}, weight, totals.pcie.most);
  write_most(wire.pcie, 0, std::min(length, grh), weight, totals.pcie.most);
}

Bytes recv_stride_of(const QpFacts& qp) {
  return Bytes(std::bit_ceil(kRecvStride.value * std::max<std::uint64_t>(qp.max_recv_sge, 1)));
}

Bytes shared_recv_stride(std::uint32_t max_sge) {
  return Bytes(std::bit_ceil(kSrqNextSegment.value + kRecvStride.value * std::max<std::uint64_t>(max_sge, 1)));
}

}  // namespace verbscope::driver
