// What a NIC knows of a QP: its queues of work requests, and what its two sides remember.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/ring.hpp"
#include "common/units.hpp"
#include "nic_sim/link/packet.hpp"
#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/send_layout.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {

// The queues of work requests: what the program has posted, and how far program and NIC are with it. Counts run from
// the last reset of the QP.
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

// The two sides of a QP remember this in the NIC: the requester's, which sends requests and gets answers, and the
// responder's, which gets requests and answers.

// READs and atomics under way, by work request, in order. Adapters allow 16 of a QP at once.
inline constexpr std::uint32_t kMostReads = 16;
struct ReadsUnderWay {
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
  std::array<std::uint64_t, kMostReads> wqes{};

  std::uint64_t count() const { return begun - ended; }
  std::uint64_t oldest() const { return wqes[ended % kMostReads]; }
  std::uint64_t newest() const { return wqes[(begun - 1) % kMostReads]; }
  void begin(std::uint64_t wqe) {
    if (count() == 0) begun = ended = 0;  // few at a time stay in one cache line
    wqes[begun++ % kMostReads] = wqe;
  }
  // READs and atomics from work request `wqe` on will be asked for again.
  void forget_from(std::uint64_t wqe) {
    while (count() > 0 && newest() >= wqe) --begun;
  }
};

// How congestion has slowed a QP: the reaction point of DCQCN, by the names of its paper R_C, R_T and alpha.
struct Pace {
  double rate = 0;    // bytes a second; 0: not limited
  double target = 0;  // likewise
  double alpha = 1;
  Picos alpha_falls{Picos::max()};  // next, without a CNP
  Picos rises{0};                   // next, by the timer
  std::uint64_t bytes = 0;          // since the byte counter's last turn
  int by_timer = 0, by_bytes = 0;   // rises since the last CNP
  Picos next{0};                    // no packet leaves before
  Picos next_cnp{0};                // the notification point tells the peer no earlier
};

// The requester's side of a QP remembers this.
struct RequesterState {
  std::uint32_t unit = 0;              // has it, or had it last
  std::uint32_t fetch_share = 0;       // of fetching WQEs ahead
  UnitTime time;                       // that units had for it
  bool queued = false;                 // it stands in line for a unit
  bool served = false;                 // a unit has it
  bool waiting = false;                // a WQE is being read again for it
  bool waits_for_rnr = false;          // it waits for an RNR timer
  bool waits_for_rate = false;         // its next packet waits for the rate of the QP
  std::uint8_t rnr_waits = 0;          // so many timers were set: all but the last are void
  std::uint32_t packet_of_next = 0;    // packets of the WQE at `next` that are sent
  std::uint32_t sequence_to_post = 0;  // PSN of the next work request that is posted
  std::uint32_t sequence_unsent = 0;   // the first that was never sent
  std::uint32_t acknowledged = 0;      // PSN that the peer has confirmed last
  Picos progress_at{0};                // the last time that something was sent first or acknowledged
  int retries_left = 0;
  int rnr_retries_left = 0;
  SimQp* next_in_line = nullptr;
  PacketQueue unsent;               // packets in order, those whose payload is still being read among them
  PacketQueue answers;              // were taken in, and wait for what is being read
  bool asked_again = false;         // a lost response was asked for again; nothing has come since
  bool reading_for_answer = false;  // the WQE of a response is being read again; answers wait
  bool timer_runs = false;

  bool must_wait() const { return waiting || waits_for_rnr || waits_for_rate; }
};

// The responder's last results of atomics, kept for repeated requests.
struct AtomicResults {
  struct Result {
    std::uint32_t sequence;
    std::uint64_t value;
  };
  std::uint64_t kept = 0;
  std::array<Result, kMostReads> results{};

  void keep(std::uint32_t sequence, std::uint64_t value) { results[kept++ % kMostReads] = {sequence, value}; }
  // Null when it is not kept any more.
  const Result* find(std::uint32_t sequence) const {
    const auto* end = results.data() + std::min<std::uint64_t>(kept, kMostReads);
    const auto* result = std::find_if(results.data(), end, [=](const Result& r) { return r.sequence == sequence; });
    return result == end ? nullptr : result;
  }
};

// What has arrived for a QP and is not done. It outlives a reset.
struct Arrivals {
  PacketQueue line;            // in the order of arrival; a unit may be with the first
  std::uint32_t requests = 0;  // in it
  std::uint32_t unit = 0;      // that has the QP, or had it last
  bool served = false;         // a unit has it
  bool queued = false;         // it stands in the line of QPs
  SimQp* next_in_line = nullptr;
  UnitTime time;    // that units had for it
  Picos latest{0};  // when the last packet comes, or came, to the line
};

// The responder's side of a QP remembers this.
struct ResponderState {
  std::uint32_t expected = 0;        // PSN
  std::uint32_t offset = 0;          // bytes of the present message that have arrived
  bool dropping = false;             // UC: the rest of a message that lost a packet
  bool nak_sent = false;             // one NAK per gap
  std::uint32_t unacknowledged = 0;  // messages since the last ACK
  PacketQueue answers;               // all in order, those whose data are still being read among them
  bool waits_for_rate = false;       // the first of them waits for the rate of the QP
  std::uint32_t reads = 0;           // READs and atomics that are not answered yet
  std::uint32_t atomics = 0;         // so many have not written yet
  // The RECV of the present message.
  bool has_recv = false;
  RecvWqe recv{};
  std::uint64_t recv_index = 0;
  const ibv_sge* recv_sges = nullptr;
};

}  // namespace verbscope::sim
