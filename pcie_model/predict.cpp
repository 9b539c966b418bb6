#include "pcie_model/predict.hpp"

#include <algorithm>
#include <bit>

#include "common/error.hpp"
#include "pcie_model/costs.hpp"
#include "wire/doorbell.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

namespace {

constexpr int kMaxQueueDepth = 1 << 20;
constexpr std::int64_t kMaxOffset = 4095;  // a payload's offset in a page

void check_range(const char* what, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) fail("{} {}: must be from {} to {}", what, value, low, high);
}

InlineReceiveRoom room_of(const ClusterWire& cluster, const VerbShape& shape) {
  return inline_receive_room(cluster.family, shape.transport, shape.verb, cluster.cqe_bytes);
}

void check_message(const ClusterWire& cluster, const VerbShape& shape) {
  const VerbFacts& verb = facts(shape.verb);
  const TransportFacts& transport = facts(shape.transport);
  if (!transport.verbs.has(shape.verb)) {
    fail("transport {} does not support {}", to_string(shape.transport), to_string(shape.verb));
  }
  if (shape.header_only && verb.one_sided) fail("{} cannot be header-only; only send can", verb.name);
  if (shape.header_only && shape.payload.value > 0) {
    fail("a header-only message has no payload, but the size is {} B; it must be 0", shape.payload.value);
  }
  if (shape.immediate && !verb.takes_immediate) fail("{} cannot carry an immediate", verb.name);
  const InlineReceive place = room_of(cluster, shape).place;
  const bool not_shared = place == InlineReceive::in_recv && shape.shared_recv_queue;
  if (shape.inline_recv && (place == InlineReceive::nowhere || not_shared)) {
    fail("{} ({}) supports no inline receive of {} {}{}", cluster.name, to_string(cluster.family), transport.name,
         verb.name, not_shared ? " on a shared receive queue" : "");
  }
  if (transport.one_packet && shape.payload > cluster.mtu) {
    fail("payload of {} B: {} allows at most the MTU of {}, {} B", shape.payload.value, transport.name, cluster.name,
         cluster.mtu.value);
  }
  if (verb.atomic && shape.payload != Bytes(kAtomicBytes)) {
    fail("payload of {} is {} B; it must be {} B", verb.name, shape.payload.value, kAtomicBytes);
  }
  check_range("payload offset", static_cast<std::int64_t>(shape.payload_offset.value), 0, kMaxOffset);
  if (shape.payload.value > kLongestMessage)
    fail("payload of {} B: a message has at most {} B", shape.payload.value, kLongestMessage);
  if (shape.ports_used) check_range("number of ports", *shape.ports_used, 1, cluster.ports);
}

// The inline capability of the QP: at least a payload that is inline.
Bytes inline_capability(const VerbShape& shape) {
  return std::max(shape.max_inline_cap, shape.inlined ? shape.payload : Bytes(0));
}

void check_requester(const ClusterWire& cluster, const VerbShape& shape) {
  if (!facts(shape.verb).requests)
    fail("{} is not sent by a requester; predict the receiver instead", to_string(shape.verb));
  check_message(cluster, shape);
  const Bytes requested = inline_capability(shape);
  if (requested > cluster.max_inline) {
    fail("inline size {} B: {} allows at most {} B", requested.value, cluster.name, cluster.max_inline.value);
  }
  check_range("send queue depth", shape.send_queue_depth, 1, kMaxQueueDepth);
  check_range("post list", shape.post_list, 1, shape.send_queue_depth);
  check_range("post step", shape.post_step, 0, shape.send_queue_depth);
  check_range("signal-every", shape.signal_every, 1, shape.send_queue_depth);
}

// Cost of a payload that crosses the link packet by packet; `transfer` returns the cost of one packet.
PciePerOp by_packets(PciePerOp (*transfer)(const PcieLink&, std::uint64_t, Bytes), const ClusterWire& cluster,
                     const VerbShape& shape) {
  const std::uint64_t begin = shape.payload_offset.value, mtu = cluster.mtu.value;
  PciePerOp cost;
  add_weighted(cost, transfer(cluster.pcie, begin, cluster.mtu), static_cast<double>(shape.payload.value / mtu));
  add_weighted(cost, transfer(cluster.pcie, begin, Bytes(shape.payload.value % mtu)), 1.0);
  return cost;
}

// True if the payload arrives in the CQE: the QP has inline receive, and the payload fits.
bool arrives_in_cqe(const ClusterWire& cluster, const VerbShape& shape) {
  const InlineReceiveRoom room = room_of(cluster, shape);
  return shape.inline_recv && room.place == InlineReceive::in_cqe && shape.payload <= room.max_payload;
}

// RoCE v2 delivers the IPv4 header of each datagram, in the place of a GRH in front of the payload (InfiniBand
// specification, annex A17.9.2), so the adapter writes that place. On InfiniBand only packets to a GID have a GRH.
PciePerOp header_room(const ClusterWire& cluster, const VerbShape& shape) {
  const std::uint64_t room = facts(shape.transport).grh_room;
  if (!facts(cluster.link_type).ethernet || room == 0) return {};
  return dma_write(cluster.pcie, shape.payload_offset.value + cluster.pcie.rcb.value - room, Bytes(room));
}

// The stride of the receive queue.
Bytes stride_of_recvs(const ClusterWire& cluster, const VerbShape& shape) {
  if (shape.shared_recv_queue) return kSrqNextSegment + kRecvStride;
  const bool in_recv = shape.inline_recv && room_of(cluster, shape).place == InlineReceive::in_recv;
  return in_recv ? recv_stride(kRecvStride, shape.transport, std::max(shape.max_inline_recv, shape.payload))
                 : kRecvStride;
}

bool has_immediate(const VerbShape& shape) {
  return shape.header_only || shape.immediate;
}

// A shared queue keeps one slot free: rdma-core 44 mlx5_alloc_srq_buf, mlx4_create_srq.
std::uint64_t recv_slots(const VerbShape& shape) {
  return std::bit_ceil(static_cast<std::uint64_t>(shape.recv_queue_depth) + (shape.shared_recv_queue ? 1 : 0));
}

// Adds the cost of one RECV: its WQE is read together with those of its group, and a CQE reports its use.
void add_recv(const ClusterWire& cluster, const VerbShape& shape, Prediction& out) {
  check_range("receive queue depth", shape.recv_queue_depth, 1, kMaxQueueDepth);
  check_range("post list", shape.post_list, 1, shape.recv_queue_depth);
  const Bytes stride = stride_of_recvs(cluster, shape);
  const std::uint64_t slots = recv_slots(shape), group = recv_group(cluster, shape);
  out.wqe_bytes = stride;
  out.wqe_lines = 1;
  out.method = PostMethod::doorbell_record;
  const PciePerOp fetch = ring_read_mean(cluster.pcie, stride * slots, stride * group, stride * group);
  add_weighted(out.pcie, fetch, 1.0 / static_cast<double>(group));
  add_weighted(out.pcie, dma_write(cluster.pcie, 0, cluster.cqe_bytes), 1.0);

  out.cpu.ring_bytes = static_cast<double>(kRecvStride.value);
  out.cpu.record_bytes = static_cast<double>(facts(cluster.family).recv_doorbell_record.value) / shape.post_list;
  out.cpu.stores = static_cast<double>(kRecvStride.value) / 8 + 1.0 / shape.post_list;
}

// DMA reads per operation: of WQEs posted by doorbell, and of payload that is not in the WQE.
PciePerOp requester_reads(const ClusterWire& cluster, const VerbShape& shape, const WqeSize& wqe, PostMethod method) {
  PciePerOp reads;
  if (method == PostMethod::doorbell) {
    const SendQueueLayout queue = send_queue_layout(cluster.family, shape.transport, wqe, inline_capability(shape),
                                                    !shape.header_only, shape.send_queue_depth);
    const auto list = static_cast<std::uint64_t>(shape.post_list);
    const std::uint64_t step = shape.post_step > 0 ? static_cast<std::uint64_t>(shape.post_step) : list;
    const Bytes each = kWqeBlock * static_cast<std::uint64_t>(wqe.lines());
    if (each == queue.stride) {
      const Bytes begin =
          shape.begin_blocks > 0 ? kWqeBlock * static_cast<std::uint64_t>(shape.begin_blocks) : each * step;
      add_weighted(reads, ring_read_mean(cluster.pcie, queue.ring, begin, each * list), 1.0 / shape.post_list);
    } else {  // gaps between WQEs are not read, so each WQE is a separate read
      add_weighted(reads, ring_read_mean(cluster.pcie, queue.ring, queue.stride, each), 1.0);
    }
  }
  if (facts(shape.verb).carries_payload && !shape.inlined)
    add_weighted(reads, by_packets(dma_read, cluster, shape), 1.0);
  return reads;
}

CpuStores requester_stores(const ClusterWire& cluster, const VerbShape& shape, const WqeSize& wqe, PostMethod method) {
  const double posts = 1.0 / shape.post_list;
  const auto record = static_cast<double>(facts(cluster.family).send_doorbell_record.value);
  CpuStores cpu;
  cpu.ring_bytes = static_cast<double>(wqe.used.value);
  cpu.record_bytes = record * posts;
  cpu.stores = static_cast<double>(divide_up(wqe.used.value, 8)) + (record > 0 ? posts : 0);
  if (method == PostMethod::blueflame) {
    cpu.mmio_bytes = wqe.lines() * static_cast<double>(kCacheLine.value);
    cpu.stores += cpu.mmio_bytes / 8;
  } else {
    cpu.mmio_bytes = static_cast<double>(cluster.doorbell_bytes.value) * posts;
    cpu.stores += posts;
  }
  return cpu;
}

// Useful bandwidth of DMA reads: bandwidth * C_rc / (C_rc + completion header), as in section 5.2.1 of Kalia et al.,
// ATC 2016; C_rc is the largest completion.
BytesPerSecond dma_read_bandwidth(const PcieLink& link) {
  const auto bytes = static_cast<double>(link.completion.value);
  return BytesPerSecond{link.bandwidth().value * bytes / (bytes + static_cast<double>(link.completion_header.value))};
}

// Write-combined lines per second: bandwidth / (64 + request header), from the same section.
double mmio_lines_per_second(const PcieLink& link) {
  return link.bandwidth().value / static_cast<double>(kCacheLine.value + link.request_header.value);
}

// What an operation uses besides its PCIe events.
struct ResourceUse {
  double dma_read_bytes = 0;  // payload of the read completions, without headers
  Bytes wire_out;
  Bytes wire_in;
};

// Sets binding and bound_mops from the bounds. Precondition: at least one bound.
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

// Sets bounds, binding and bound_mops. Precondition: pcie, wqe_lines, method and shape are set.
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

Prediction predict_requester(const ClusterWire& cluster, const VerbShape& shape) {
  check_requester(cluster, shape);
  const WqeSize wqe = wqe_size(cluster.family, shape.verb, shape.transport, shape.payload, shape.inlined);
  Prediction out;
  out.wire = cluster;
  out.role = "requester";
  out.shape = shape;
  out.wqe_bytes = wqe.used;
  out.wqe_lines = wqe.lines();
  const Post post{.verb = shape.verb,
                  .payload = shape.payload,
                  .inlined = shape.inlined,
                  .size = wqe.padded,
                  .list = static_cast<std::uint64_t>(shape.post_list)};
  const bool blueflame = goes_by_blueflame(cluster.family, cluster.blueflame_max, post);
  out.method = blueflame ? PostMethod::blueflame : PostMethod::doorbell;

  const PciePerOp reads = requester_reads(cluster, shape, wqe, out.method);
  add_weighted(out.pcie, reads, 1.0);
  if (out.method == PostMethod::blueflame) {
    add_weighted(out.pcie, mmio_lines(cluster.pcie, wqe.lines()), 1.0);
  } else {
    add_weighted(out.pcie, mmio_doorbell(cluster.pcie, cluster.doorbell_bytes), 1.0 / shape.post_list);
  }
  if (facts(shape.verb).wants_response) {
    const double written = arrives_in_cqe(cluster, shape) ? 1 - 1.0 / shape.signal_every : 1;
    add_weighted(out.pcie, by_packets(dma_write, cluster, shape), written);
  }
  add_weighted(out.pcie, dma_write(cluster.pcie, 0, cluster.cqe_bytes), 1.0 / shape.signal_every);
  out.cpu = requester_stores(cluster, shape, wqe, out.method);

  const Bytes sent =
      request_bytes(shape.verb, shape.transport, shape.payload, has_immediate(shape), cluster.mtu, cluster.link_type);
  const Bytes received = response_bytes(shape.verb, shape.payload, cluster.mtu, cluster.link_type);
  set_bounds(out, cluster, {reads.payload_bytes_to_nic, sent, received});
  return out;
}

std::uint64_t recv_group(const ClusterWire& cluster, const VerbShape& shape) {
  return std::min<std::uint64_t>(recv_slots(shape), static_cast<std::uint64_t>(cluster.recv_prefetch));
}

Prediction predict_receiver(const ClusterWire& cluster, const VerbShape& shape) {
  if (facts(shape.verb).one_sided) fail("{} uses no RECV; predict the responder instead", to_string(shape.verb));
  check_message(cluster, shape);
  Prediction out;
  out.wire = cluster;
  out.role = "receiver";
  out.shape = shape;
  add_recv(cluster, shape, out);
  if (!arrives_in_cqe(cluster, shape)) add_weighted(out.pcie, by_packets(dma_write, cluster, shape), 1.0);
  add_weighted(out.pcie, header_room(cluster, shape), 1.0);

  const Bytes received =
      request_bytes(Verb::send, shape.transport, shape.payload, has_immediate(shape), cluster.mtu, cluster.link_type);
  set_bounds(out, cluster, {static_cast<double>(out.wqe_bytes.value), Bytes(0), received});
  return out;
}

Prediction predict_responder(const ClusterWire& cluster, const VerbShape& shape) {
  const VerbFacts& verb = facts(shape.verb);
  if (!verb.one_sided) fail("{} is not one-sided; predict the receiver instead", verb.name);
  check_message(cluster, shape);
  Prediction out;
  out.wire = cluster;
  out.role = "responder";
  out.shape = shape;
  out.method = PostMethod::none;
  if (shape.immediate) add_recv(cluster, shape, out);

  PciePerOp reads;
  if (verb.wants_response) add_weighted(reads, by_packets(dma_read, cluster, shape), 1.0);
  add_weighted(out.pcie, reads, 1.0);
  if (verb.carries_payload || verb.atomic) add_weighted(out.pcie, by_packets(dma_write, cluster, shape), 1.0);

  const Bytes received =
      request_bytes(shape.verb, shape.transport, shape.payload, shape.immediate, cluster.mtu, cluster.link_type);
  const Bytes sent = response_bytes(shape.verb, shape.payload, cluster.mtu, cluster.link_type);
  set_bounds(out, cluster, {reads.payload_bytes_to_nic + static_cast<double>(out.wqe_bytes.value), sent, received});
  return out;
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

Prediction predict_together(const std::string& role, const std::vector<PredictedPart>& parts) {
  if (parts.empty()) fail("predict_together needs at least one part");
  Prediction out = parts.front().prediction;
  out.role = role;
  out.pcie = {};
  out.cpu = {};
  out.bounds.clear();
  for (const PredictedPart& part : parts) {
    if (!(part.per_op >= 0)) fail("a part occurs {} times per operation: must be 0 or more", part.per_op);
    add_weighted(out.pcie, part.prediction.pcie, part.per_op);
    add_weighted(out.cpu, part.prediction.cpu, part.per_op);
  }
  for (const ResourceTime& time : times_of(parts)) out.bounds.push_back({time.resource, 1 / time.us});
  if (out.bounds.empty()) fail("predict_together: no part occurs; at least one must");
  set_binding(out);
  return out;
}

Prediction with_completion_events(const Prediction& prediction, double per_op) {
  const PcieLink& link = prediction.wire.pcie;
  Prediction event;
  add_weighted(event.pcie, mmio_doorbell(link, kArmDoorbell), 1.0);
  add_weighted(event.pcie, dma_write(link, 0, kEventQueueEntry), 1.0);
  add_weighted(event.pcie, dma_write(link, 0, kInterruptMessage), 1.0);
  event.cpu.mmio_bytes = static_cast<double>(kArmDoorbell.value);
  event.cpu.stores = 1;
  set_bounds(event, prediction.wire, {});
  Prediction out = predict_together(prediction.role, {{prediction}, {event, per_op}});
  out.shape.events = per_op;
  return out;
}

}  // namespace verbscope
