// The state of a QP in the NIC: its queues of work requests, and the states of its requester and its responder.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/ring.hpp"
#include "common/units.hpp"
#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/send_layout.hpp"
#include "wire/dcqcn.hpp"
#include "wire/verb.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {

struct SimQp;

// The WQEs of one MMIO write (BlueFlame or doorbell). The number of the first WQE identifies the batch.
struct Batch {
  std::uint32_t count;
  std::uint32_t bytes;            // of its WQEs together
  std::uint32_t reads_left : 30;  // outstanding DMA reads of its WQEs
  bool at_nic : 1;
  bool has_context : 1;  // its doorbell has arrived, and the QP's context was in the NIC
};

// Work of a request that sends nothing: on the keys of memory windows. Done work is not repeated when packets before it
// are.
enum class KeyWork : std::uint8_t { none, bind, bound, invalidate, invalidated };

struct alignas(64) SendWqe {
  std::uint64_t wr_id;
  std::uint64_t index;
  SimQp* qp;
  CachePlace place;  // in a WQE cache
  bool sent;         // all its packets were sent; it is kept for its response, if at all
  bool led_reread;   // the first WQE of a run that was read again
  // Of a request without packets. bind: `rkey` is the window's new key, `immediate` an earlier one, `remote_address`
  // and `compare` are the range, `operand` is the access, and the SGE names the region. invalidate: `rkey`.
  KeyWork key_work;
  std::uint8_t priority;  // of its packets
  std::uint64_t remote_address;
  std::uint64_t operand;  // of an atomic: the addend or the new value
  std::uint64_t compare;
  std::uint32_t rkey;
  std::uint32_t responses;  // response packets received in order
  std::uint32_t length;     // bytes of the message
  std::uint32_t immediate;
  std::uint32_t bytes;        // size of the WQE, in whole 64-byte blocks
  std::uint32_t ring_offset;  // of the WQE in the send queue, bytes
  std::uint32_t sequence;     // PSN of the first packet
  std::uint32_t sequences;    // number of PSNs: its packets, or the response packets of a READ
  std::uint32_t packets;      // request packets: 1 for a READ
  std::uint32_t target_node;
  std::uint32_t target_qp;
  std::uint32_t qkey;  // on XRC: the number of the target's shared queue
  Verb verb;
  std::uint8_t sges;
  bool signaled;
  bool fenced;  // waits for the READs and atomics before it
  bool solicited;
  Carried carried;  // in `immediate`
  GlobalHeader global;
  bool inlined;
  bool by_blueflame;
  bool staged;  // read again after a miss, and held until used
  bool coming;  // being read again
  bool ahead;   // counts in the fetch-ahead share
  Batch batch;  // of the first WQE of a batch

  bool wants_response() const { return facts(verb).wants_response; }
  bool answered() const { return !wants_response() || responses == sequences; }
  // Neither in the NIC nor being read.
  bool missing() const { return !place.cached() && !staged && !coming; }
};

static_assert(sizeof(SendWqe) == 128, "two cache lines");

struct SendQueue {
  Ring<SendWqe> ring;
  // Numbers of work requests since the last reset of the QP. All before each of these have passed that stage.
  std::uint64_t posted = 0;
  std::uint64_t rung = 0;     // their batches were begun by WqeFetcher, in order
  std::uint64_t arrived = 0;  // their WQEs are in the NIC
  std::uint64_t next = 0;     // all their packets were built
  std::uint64_t done = 0;     // sent (unreliable) or acknowledged (reliable)
  std::uint64_t freed = 0;    // the program has polled their completion, or a later one

  std::uint64_t ring_bytes = 0;
  std::uint64_t posted_bytes = 0;  // packed blocks: offset of the next WQE, not wrapped
  std::uint32_t slot_bytes = 0;    // fixed slots (mlx4); 0: packed blocks
  std::uint32_t depth = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_inline = 0;
  const TransportRules* verbs = nullptr;
  std::unique_ptr<ibv_sge[]> sges;           // max_sge per slot
  std::unique_ptr<std::byte[]> inline_data;  // max_inline per slot

  bool has_work() const { return next < arrived; }
  // The number of a work request from its low `bits`: one of the last 2^bits that were posted.
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
  std::uint32_t slot_bytes = 0;      // of a descriptor
  std::uint32_t per_descriptor = 1;  // RECVs; more in a multi-packet receive queue
  std::uint64_t posted = 0;
  std::uint64_t fetched = 0;   // in the NIC
  std::uint64_t fetching = 0;  // in the NIC or being read
  std::uint64_t used = 0;
  std::uint64_t freed = 0;

  // `places`: capacity, at least. `before_sges`: size of a WQE in front of its data segments.
  void resize(std::uint32_t wrs, std::uint32_t sges_each, std::size_t places, Bytes before_sges) {
    depth = wrs;
    max_sge = std::max(sges_each, 1u);
    slot_bytes = static_cast<std::uint32_t>(std::bit_ceil(before_sges.value + max_sge * kDataSegment.value));
    ring.resize(places);
    sges.resize(ring.size() * max_sge);
  }

  // Keeps the RECVs that wait. Precondition: at most `wrs` do.
  void change_depth(std::uint32_t wrs, std::size_t places) {
    Ring<RecvWqe> more(places);
    std::vector<ibv_sge> more_sges(more.size() * max_sge);
    for (std::uint64_t n = used; n < posted; ++n) {
      more[n] = at(n);
      std::copy_n(sges_of(n), max_sge, &more_sges[more.place(n) * max_sge]);
    }
    depth = wrs;
    ring = std::move(more);
    sges = std::move(more_sges);
  }

  RecvWqe& at(std::uint64_t n) { return ring[n]; }
  ibv_sge* sges_of(std::uint64_t n) { return &sges[ring.place(n) * max_sge]; }
};

// Outstanding READs and atomics of a QP, by work request, in order.
struct ReadsUnderWay {
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
  std::array<std::uint64_t, kMaxReads> wqes{};

  std::uint64_t count() const { return begun - ended; }
  std::uint64_t oldest() const { return wqes[ended % kMaxReads]; }
  std::uint64_t newest() const { return wqes[(begun - 1) % kMaxReads]; }
  void begin(std::uint64_t wqe) {
    if (count() == 0) begun = ended = 0;  // a few outstanding ones stay in one cache line
    wqes[begun++ % kMaxReads] = wqe;
  }
  // Forgets those from work request `wqe` on, which will be sent again.
  void forget_from(std::uint64_t wqe) {
    while (count() > 0 && newest() >= wqe) --begun;
  }
};

// State of DCQCN for a QP.
struct Pace {
  DcqcnFlow flow;     // reaction point
  Picos next{0};      // earliest time of the next packet
  Picos next_cnp{0};  // earliest time of the next CNP to the peer (notification point)
};

// State of a QP's requester.
struct RequesterState {
  std::uint32_t unit = 0;              // works on the QP, or did last
  std::uint32_t fetch_share = 0;       // number of the fetch-ahead share
  UnitTime time;                       // of units, for this QP
  bool queued = false;                 // in line for a unit
  bool served = false;                 // a unit works on it
  bool waiting = false;                // for a WQE that is being read again
  bool waits_for_rnr = false;          // for an RNR timer
  bool waits_for_rate = false;         // the next packet waits for the rate of the QP
  std::uint8_t rnr_waits = 0;          // RNR timers set so far: only the last one counts
  std::uint32_t packet_of_next = 0;    // packets built of the WQE at `next`
  std::uint32_t sequence_to_post = 0;  // PSN of the next work request to be posted
  std::uint32_t sequence_unsent = 0;   // first PSN that was never sent
  std::uint32_t acknowledged = 0;      // last PSN that the peer has confirmed
  Picos progress_at{0};                // last time at which something was sent first or acknowledged
  int retries_left = 0;
  int rnr_retries_left = 0;
  SimQp* next_in_line = nullptr;
  PacketQueue unsent;               // built packets in order; the payload of some may still be being read
  PacketQueue answers;              // processed by units, and waiting for a WQE that is being read again
  bool requested_again = false;     // a lost response was requested again, and nothing has arrived since
  bool reading_for_answer = false;  // the WQE of a response is being read again
  bool timer_runs = false;

  bool must_wait() const { return waiting || waits_for_rnr || waits_for_rate; }
};

// Results of the responder's last atomics, kept for repeated requests.
struct AtomicResults {
  struct Result {
    std::uint32_t sequence;
    std::uint64_t value;
  };
  std::uint64_t count = 0;  // so far
  std::array<Result, kMaxReads> results{};

  void add(std::uint32_t sequence, std::uint64_t value) { results[count++ % kMaxReads] = {sequence, value}; }
  // Null if the result was overwritten.
  const Result* find(std::uint32_t sequence) const {
    const auto* end = results.data() + std::min<std::uint64_t>(count, kMaxReads);
    const auto* result = std::find_if(results.data(), end, [=](const Result& r) { return r.sequence == sequence; });
    return result == end ? nullptr : result;
  }
};

// Packets that have arrived for a QP and are not finished. A reset of the QP does not change it.
struct Arrivals {
  PacketQueue line;            // in order of arrival; a unit may be processing the first
  std::uint32_t requests = 0;  // in `line`
  std::uint32_t unit = 0;      // works on the QP, or did last
  bool served = false;         // a unit works on it
  bool queued = false;         // in line for a unit
  SimQp* next_in_line = nullptr;
  UnitTime time;    // of units, for this QP
  Picos latest{0};  // time at which the last packet joins, or joined, `line`
};

// State of a QP's responder.
struct ResponderState {
  std::uint32_t expected = 0;        // PSN
  std::uint32_t offset = 0;          // bytes of the current message that have arrived
  bool dropping = false;             // UC: drops the rest of a message that lost a packet
  bool nak_sent = false;             // for the current gap
  std::uint32_t unacknowledged = 0;  // messages since the last ACK
  PacketQueue answers;               // in order; the data of some may still be being read
  bool waits_for_rate = false;       // the first answer waits for the rate of the QP
  std::uint32_t reads = 0;           // READs and atomics not answered yet
  std::uint32_t atomics = 0;         // atomics that have not written yet
  // The RECV of the current message.
  bool has_recv = false;
  RecvWqe recv{};
  std::uint64_t recv_index = 0;
  const ibv_sge* recv_sges = nullptr;
};

}  // namespace verbscope::sim
