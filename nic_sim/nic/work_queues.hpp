// The queues of work requests: what the program has posted, and how far program and NIC are with it. Counts run from
// the last reset of the QP.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/ring.hpp"
#include "common/units.hpp"
#include "nic_sim/nic/cache_place.hpp"
#include "nic_sim/nic/send_layout.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {

struct SimQp;

// WQEs that one MMIO write brings or rings for. A batch is named by the number of its first, which keeps this.
struct Batch {
  std::uint32_t count;
  std::uint32_t bytes;            // its WQEs take together
  std::uint32_t reads_left : 30;  // DMA reads that fetch it and are not back
  bool at_nic : 1;
  bool has_context : 1;  // the QP's state was in the NIC for it
};

struct alignas(64) SendWqe {
  std::uint64_t wr_id;
  std::uint64_t index;
  SimQp* qp;
  CachePlace place;  // where a WQE cache has it
  bool sent;         // it is kept for its response, if at all
  bool led_reread;   // the first of those that were read again together
  std::uint64_t remote_address;
  std::uint64_t operand;  // what an atomic adds or swaps in
  std::uint64_t compare;
  std::uint32_t rkey;
  std::uint32_t responses;  // packets of the response that have come in order
  std::uint32_t length;     // bytes of the message
  std::uint32_t immediate;
  std::uint32_t bytes;        // size of the WQE, in whole 64-byte blocks
  std::uint32_t ring_offset;  // where the WQE begins in the send queue
  std::uint32_t sequence;     // PSN of the first packet
  std::uint32_t sequences;    // PSNs that it takes: its packets, or those of the response to a READ
  std::uint32_t packets;      // packets of the request itself: 1 of a READ
  std::uint32_t target_node;
  std::uint32_t target_qp;
  std::uint32_t qkey;
  Verb verb;
  std::uint8_t sges;
  bool signaled;
  bool fenced;  // waits for the READs and atomics before it
  bool solicited;
  bool has_immediate;
  bool has_grh : 1;
  std::uint8_t priority : 3;  // of its packets
  bool inlined;
  bool by_blueflame;
  bool staged;  // read again after a miss, held for its use
  bool coming;  // being read again
  bool ahead;   // counts as fetched ahead in its unit
  Batch batch;  // the batch that it is the first of

  bool wants_response() const { return facts(verb).wants_response; }
  bool answered() const { return !wants_response() || responses == sequences; }
  // It is neither in the NIC nor on its way there.
  bool missing() const { return !place.cached() && !staged && !coming; }
};

static_assert(sizeof(SendWqe) == 128, "two cache lines");

struct SendQueue {
  Ring<SendWqe> ring;
  // Work requests, counted since the QP was reset.
  std::uint64_t posted = 0;
  std::uint64_t rung = 0;     // of whose batches the NIC has been told, in order, with the QP's state there
  std::uint64_t arrived = 0;  // at the NIC
  std::uint64_t next = 0;     // the requester's unit will take it up
  std::uint64_t done = 0;     // sent (unreliable) or acknowledged (reliable)
  std::uint64_t freed = 0;    // the program has polled its completion, or a later one's

  std::uint64_t ring_bytes = 0;
  std::uint64_t posted_bytes = 0;  // packed blocks: where the next WQE begins, not wrapped
  std::uint32_t slot_bytes = 0;    // fixed slots (mlx4); 0: packed blocks
  std::uint32_t depth = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_inline = 0;
  const TransportRules* verbs = nullptr;
  std::unique_ptr<ibv_sge[]> sges;           // max_sge per slot
  std::unique_ptr<std::byte[]> inline_data;  // max_inline per slot

  bool has_work() const { return next < arrived; }
  // The work request of which `low` has the low `bits` of the number; none but the last 2^bits can be meant.
  std::uint64_t whole(std::uint64_t low, unsigned bits) const {
    return posted - ((posted - low) & ((std::uint64_t{1} << bits) - 1));
  }
  SendWqe& at(std::uint64_t n) { return ring[n]; }
  Batch& batch(std::uint64_t first) { return ring[first].batch; }
  ibv_sge* sges_of(std::uint64_t n) { return &sges[ring.place(n) * max_sge]; }
  std::byte* inline_data_of(std::uint64_t n) { return &inline_data[ring.place(n) * max_inline]; }
};

struct RecvWqe {
  std::uint64_t wr_id;
  std::uint32_t sges;
  std::uint64_t length;
};

struct RecvQueue {
  Ring<RecvWqe> ring;
  std::vector<ibv_sge> sges;
  std::uint32_t depth = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t slot_bytes = 0;
  std::uint64_t posted = 0;
  std::uint64_t fetched = 0;   // at the NIC
  std::uint64_t fetching = 0;  // asked for
  std::uint64_t used = 0;
  std::uint64_t freed = 0;

  // `places`: at least. `before_sges`: bytes of a WQE in front of its data segments.
  void resize(std::uint32_t wrs, std::uint32_t sges_each, std::size_t places, Bytes before_sges) {
    depth = wrs;
    max_sge = std::max(sges_each, 1u);
    slot_bytes = static_cast<std::uint32_t>(std::bit_ceil(before_sges.value + max_sge * kDataSegment.value));
    ring.resize(places);
    sges.resize(ring.size() * max_sge);
  }

  RecvWqe& at(std::uint64_t n) { return ring[n]; }
  ibv_sge* sges_of(std::uint64_t n) { return &sges[ring.place(n) * max_sge]; }
};

}  // namespace verbscope::sim
