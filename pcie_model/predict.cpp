#include "pcie_model/predict.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "common/error.hpp"
#include "pcie_model/costs.hpp"
#include "pcie_model/rates.hpp"
#include "wire/doorbell.hpp"
#include "wire/wqe.hpp"

namespace verbscope {

namespace {

constexpr int kMaxQueueDepth = 1 << 20;
constexpr std::int64_t kMaxOffset = 4095;  // a payload's offset in a page
constexpr std::uint64_t kMaxMessage = std::uint64_t{1}
                                      << 31;  // the longest message (InfiniBand Architecture Specification 1.3)

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
  if (shape.payload.value > kMaxMessage)
    fail("payload of {} B: a message has at most {} B", shape.payload.value, kMaxMessage);
  if (shape.ports_used) check_range("number of ports", *shape.ports_used, 1, cluster.ports);
}

void check_requester(const ClusterWire& cluster, const VerbShape& shape) {
  if (!facts(shape.verb).requests)
    fail("{} is not sent by a requester; predict the receiver instead", to_string(shape.verb));
  check_message(cluster, shape);
  const Bytes requested = std::max(shape.max_inline_cap, shape.inlined ? shape.payload : Bytes(0));
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
  add_weighted(cost, transfer(cluster.pcie, begin, Bytes(shape.payload.value % mtu)), 1);
  return cost;
}

// True if the payload arrives in the CQE: the QP has inline receive, and the payload fits.
bool arrives_in_cqe(const ClusterWire& cluster, const VerbShape& shape) {
  const InlineReceiveRoom room = room_of(cluster, shape);
  return shape.inline_recv && room.place == InlineReceive::in_cqe && shape.payload <= room.max_payload;
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
  add_weighted(out.pcie, dma_write(cluster.pcie, 0, cluster.cqe_bytes), 1);

  out.cpu.ring_bytes = static_cast<double>(kRecvStride.value);
  out.cpu.record_bytes = static_cast<double>(facts(cluster.family).recv_doorbell_record.value) / shape.post_list;
  out.cpu.stores = static_cast<double>(kRecvStride.value) / 8 + 1.0 / shape.post_list;
}

// DMA reads per operation: of WQEs posted by doorbell, and of payload that is not in the WQE.
PciePerOp requester_reads(const ClusterWire& cluster, const VerbShape& shape, const WqeSize& wqe, PostMethod method) {
  PciePerOp reads;
  if (method == PostMethod::doorbell) {
    const SendQueueLayout queue = send_queue_layout(
        cluster.family, shape.transport, wqe, std::max(shape.max_inline_cap, shape.inlined ? shape.payload : Bytes(0)),
        !shape.header_only, shape.send_queue_depth);
    const auto list = static_cast<std::uint64_t>(shape.post_list);
    const std::uint64_t step = shape.post_step > 0 ? static_cast<std::uint64_t>(shape.post_step) : list;
    const Bytes each = kWqeBlock * static_cast<std::uint64_t>(wqe.lines());
    if (each == queue.stride) {
      const Bytes begin =
          shape.begin_blocks > 0 ? kWqeBlock * static_cast<std::uint64_t>(shape.begin_blocks) : each * step;
      add_weighted(reads, ring_read_mean(cluster.pcie, queue.ring, begin, each * list), 1.0 / shape.post_list);
    } else {  // gaps between WQEs are not read, so each WQE is a separate read
      add_weighted(reads, ring_read_mean(cluster.pcie, queue.ring, queue.stride, each), 1);
    }
  }
  if (facts(shape.verb).carries_payload && !shape.inlined) add_weighted(reads, by_packets(dma_read, cluster, shape), 1);
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
  add_weighted(out.pcie, reads, 1);
  if (out.method == PostMethod::blueflame) {
    add_weighted(out.pcie, mmio_lines(cluster.pcie, wqe.lines()), 1);
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
  if (!arrives_in_cqe(cluster, shape)) add_weighted(out.pcie, by_packets(dma_write, cluster, shape), 1);

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
  if (verb.wants_response) add_weighted(reads, by_packets(dma_read, cluster, shape), 1);
  add_weighted(out.pcie, reads, 1);
  if (verb.carries_payload || verb.atomic) add_weighted(out.pcie, by_packets(dma_write, cluster, shape), 1);

  const Bytes received =
      request_bytes(shape.verb, shape.transport, shape.payload, shape.immediate, cluster.mtu, cluster.link_type);
  const Bytes sent = response_bytes(shape.verb, shape.payload, cluster.mtu, cluster.link_type);
  set_bounds(out, cluster, {reads.payload_bytes_to_nic + static_cast<double>(out.wqe_bytes.value), sent, received});
  return out;
}

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
