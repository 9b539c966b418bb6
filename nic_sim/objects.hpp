// The verbs objects of a simulated device. Each derives from its libibverbs structure, so that a program's pointers
// lead straight to it.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/units.hpp"
#include "nic_sim/builder.hpp"
#include "nic_sim/events.hpp"
#include "nic_sim/packet.hpp"
#include "nic_sim/send_layout.hpp"
#include "nic_sim/thread.hpp"
#include "pcie_model/wire/wqe.hpp"

namespace verbscope::sim {

class Nic;
struct SimQp;

struct SimContext : ibv_context {
  Nic* nic;
  std::uint32_t inline_recv;  // bytes, for QPs that are made from now on
  int open_objects;
};

struct SimPd : ibv_pd {
  int users;
};

// Where a cache has an entry.
struct CachePlace {
  std::uint32_t number = 0;  // from 1; 0: it has not
  bool cached() const { return number > 0; }
};

// Where one page of a registered region is: an entry of the NIC's translation cache, when it is there.
struct Translation {
  CachePlace place;
  static constexpr std::uint32_t bytes = 8;  // MTT entry: rdma-core 44 and the mlx4, mlx5 kernel drivers
};

struct SimMr : ibv_mr {
  int access;
  int page_bits = 12;
  std::vector<Translation> pages;
  // Whether [address, address + bytes) lies inside.
  bool holds(std::uint64_t address, std::uint64_t bytes) const {
    const auto begin = reinterpret_cast<std::uint64_t>(addr);
    return address >= begin && bytes <= length && address - begin <= length - bytes;
  }
};

struct SimAh : ibv_ah {
  std::uint32_t node;
  std::uint8_t port;  // index from 0
  bool global;
};

// One entry of a completion queue, and when the program can see it.
struct alignas(64) Completion {
  Picos visible;
  std::uint64_t wr_id;
  SimQp* qp;
  std::uint64_t index;  // of the work request in its queue: polling frees all up to it
  ibv_wc_status status;
  ibv_wc_opcode opcode;
  std::uint32_t bytes;
  std::uint32_t immediate;
  std::uint32_t source_qp;
  std::uint16_t source_lid;  // of the port that sent it
  unsigned flags;
  bool of_send;
  bool solicited = false;  // the sender asked for an event
};

// Places grow with what is waiting, up to `cqe`: a ring of all of them would leave the processor's caches on every lap.
struct SimCq : ibv_cq {
  std::vector<Completion> places = std::vector<Completion>(64);
  std::uint64_t written = 0;
  std::uint64_t polled = 0;
  bool overrun = false;
  Arming arming;
  int users = 0;                    // QPs, counted once for each queue
  std::vector<SimThread*> waiters;  // threads that poll it

  std::uint64_t waiting() const { return written - polled; }
  Completion& at(std::uint64_t n) { return places[n & (places.size() - 1)]; }

  // There must be room.
  void push(const Completion& completion) {
    if (waiting() == places.size()) {
      std::vector<Completion> more(places.size() * 2);
      for (std::uint64_t n = polled; n < written; ++n) more[n & (more.size() - 1)] = at(n);
      places.swap(more);
    }
    at(written++) = completion;
  }
};

struct SendWqe {
  std::uint64_t wr_id;
  std::uint64_t index;
  SimQp* qp;
  CachePlace place;  // in the WQE cache
  std::uint64_t remote_address;
  std::uint64_t operand;  // of an atomic: what is added or swapped in
  std::uint64_t compare;
  std::uint32_t rkey;
  std::uint32_t responses;  // packets of the response that have come in order
  std::uint32_t length;     // of the message
  std::uint32_t immediate;
  std::uint32_t bytes;        // of the WQE, in whole 64-byte blocks
  std::uint32_t ring_offset;  // of the WQE in the send queue
  std::uint32_t sequence;     // PSN of the first packet
  std::uint32_t sequences;    // PSNs that it takes: its packets, or those of the response to a READ
  std::uint32_t packets;      // of the request
  std::uint32_t target_node;
  std::uint32_t target_qp;
  std::uint32_t qkey;
  Verb verb;
  std::uint8_t sges;
  bool signaled;
  bool fenced;  // waits for the READs and atomics before it
  bool solicited;
  bool has_immediate;
  bool has_grh;
  bool inlined;
  bool by_blueflame;
  bool staged;  // read again after a miss, held for its use
  bool ahead;   // counts as fetched ahead in its unit

  // A READ or an atomic: a response brings something.
  bool wants_response() const { return verb != Verb::send && verb != Verb::write; }
  bool answered() const { return !wants_response() || responses == sequences; }
};

// WQEs that one MMIO announced.
struct Batch {
  std::uint64_t first;
  std::uint32_t count;
  std::uint32_t bytes;       // of its WQEs together
  std::uint32_t reads_left;  // DMA reads that fetch it and are not back
  bool by_blueflame;
  bool at_nic;
};

struct SendQueue {
  std::vector<SendWqe> ring;
  std::vector<ibv_sge> sges;           // max_sge per slot
  std::vector<std::byte> inline_data;  // max_inline per slot
  std::vector<Batch> batches;
  std::uint32_t depth = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t max_inline = 0;
  std::vector<SendLayout> before_data;  // by verb: the segments before the data
  std::uint32_t slot_bytes = 0;         // fixed slots (mlx4); 0: packed blocks
  std::uint64_t ring_bytes = 0;
  std::uint64_t posted_bytes = 0;  // packed blocks: where the next WQE begins, not wrapped

  // Work requests, counted since the QP was reset.
  std::uint64_t posted = 0;
  std::uint64_t arrived = 0;  // at the NIC
  std::uint64_t next = 0;     // the requester's unit will take it up
  std::uint64_t done = 0;     // sent (unreliable) or acknowledged (reliable)
  std::uint64_t freed = 0;    // the program has polled its completion, or a later one's
  std::uint64_t batches_posted = 0;
  std::uint64_t batches_arrived = 0;

  SendWqe& at(std::uint64_t n) { return ring[n & (ring.size() - 1)]; }
  Batch& batch(std::uint64_t n) { return batches[n & (batches.size() - 1)]; }
};

struct RecvWqe {
  std::uint64_t wr_id;
  std::uint32_t sges;
  std::uint64_t length;
};

struct RecvQueue {
  std::vector<RecvWqe> ring;
  std::vector<ibv_sge> sges;
  std::uint32_t depth = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t slot_bytes = 0;
  std::uint64_t posted = 0;
  std::uint64_t fetched = 0;   // at the NIC
  std::uint64_t fetching = 0;  // asked for
  std::uint64_t used = 0;
  std::uint64_t freed = 0;

  // `places`: a power of two. `before_sges`: bytes of a WQE in front of its data segments.
  void resize(std::uint32_t wrs, std::uint32_t sges_each, std::size_t places, Bytes before_sges) {
    depth = wrs;
    max_sge = std::max(sges_each, 1u);
    slot_bytes = static_cast<std::uint32_t>(std::bit_ceil(before_sges.value + max_sge * kDataSegment.value));
    ring.resize(places);
    sges.resize(places * max_sge);
  }

  RecvWqe& at(std::uint64_t n) { return ring[n & (ring.size() - 1)]; }
  ibv_sge* sges_of(std::uint64_t n) { return &sges[(n & (ring.size() - 1)) * max_sge]; }
};

// READs and atomics under way, by work request, in order. Adapters allow 16 of a QP at once.
inline constexpr std::uint32_t kMostReads = 16;
struct ReadsUnderWay {
  std::array<std::uint64_t, kMostReads> wqes{};
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;

  std::uint64_t count() const { return begun - ended; }
  std::uint64_t oldest() const { return wqes[ended % kMostReads]; }
  std::uint64_t newest() const { return wqes[(begun - 1) % kMostReads]; }
  void begin(std::uint64_t wqe) { wqes[begun++ % kMostReads] = wqe; }
  // Those from work request `wqe` on will be asked for again.
  void forget_from(std::uint64_t wqe) {
    while (count() > 0 && newest() >= wqe) --begun;
  }
};

// What the requester's side of a QP remembers.
struct RequesterState {
  int unit = 0;
  bool queued = false;                 // in its unit's line
  bool waiting = false;                // for a WQE that is read again, or for an RNR timer
  std::uint32_t packet_of_next = 0;    // packets of the WQE at `next` that are sent
  std::uint32_t sequence_to_post = 0;  // PSN of the next work request that is posted
  std::uint32_t sequence_unsent = 0;   // the first that was never sent
  std::uint32_t acknowledged = 0;      // PSN that the peer has confirmed last
  bool reading_for_ack = false;        // a WQE is read again to complete it; answers wait
  bool timer_runs = false;
  Picos progress_at{0};  // the last time that something was sent first or acknowledged
  int retries_left = 0;
  int rnr_retries_left = 0;
  SimQp* next_in_line = nullptr;
  PacketQueue unsent;  // packets in order, those whose payload is still being read among them
  ReadsUnderWay reads;
  PacketQueue answers;              // responses that are not handled yet, and acknowledgements behind them
  std::uint32_t answers_ready = 0;  // the unit has had its time for so many of them
  bool asked_again = false;         // for a response that was lost; nothing has come since
};

// The last result of an atomic, kept for a repeated request.
struct AtomicResult {
  std::uint32_t sequence;
  std::uint64_t value;
};

// What the responder's side of a QP remembers.
struct ResponderState {
  int unit = 0;
  std::uint32_t expected = 0;         // PSN
  std::uint32_t offset = 0;           // bytes of the present message that have arrived
  bool dropping = false;              // UC: the rest of a message that lost a packet
  bool nak_sent = false;              // one NAK per gap
  std::uint32_t waiting_packets = 0;  // of this QP in the unit's line
  std::uint32_t unacknowledged = 0;   // messages since the last ACK
  PacketQueue answers;                // in order, those whose data are still being read among them
  std::uint32_t reads = 0;            // READs and atomics that are not answered yet
  std::uint32_t atomics = 0;          // that have not written yet
  std::array<AtomicResult, kMostReads> results{};
  std::uint64_t results_kept = 0;
  // The RECV of the present message.
  bool has_recv = false;
  RecvWqe recv{};
  std::uint64_t recv_index = 0;
  const ibv_sge* recv_sges = nullptr;
};

// What the QP-context cache holds: one side's state of a QP.
struct QpContext {
  CachePlace place;
  std::uint32_t bytes = 0;
};

struct SimSrq : ibv_srq {
  Nic* nic;
  RecvQueue queue;
  int users = 0;
};

struct SimQp : ibv_qp {
  Nic* nic;
  Transport transport;
  bool signal_all;
  std::uint16_t life = 0;  // counts resets: what was under way before one comes to nothing
  std::uint8_t port = 0;   // index from 0
  std::uint32_t qkey = 0;
  std::uint32_t path_mtu = 0;
  std::uint32_t peer_node = 0;
  std::uint32_t peer_qp = 0;
  bool has_grh = false;
  ibv_qp_cap caps;
  ibv_qp_attr attributes;  // as modify_qp left them, for query_qp
  SendQueue send;
  RecvQueue recv;
  RequesterState requester;
  ResponderState responder;
  QpContext requester_context;
  QpContext responder_context;
  std::uint32_t inline_recv = 0;     // bytes that a CQE may carry in the place of a payload write
  std::vector<ibv_sge> srq_sges;     // of the RECV that was taken from the shared queue
  std::unique_ptr<Builder> builder;  // of a QP that was made for ibv_wr_*

  SimSrq* shared_queue() const { return static_cast<SimSrq*>(srq); }
  RecvQueue& recv_queue() { return srq == nullptr ? recv : shared_queue()->queue; }
  SimCq& send_completions() const { return *static_cast<SimCq*>(send_cq); }
  SimCq& recv_completions() const { return *static_cast<SimCq*>(recv_cq); }
};

// Whether it takes requests.
inline bool receiving(const SimQp& qp) {
  return qp.state == IBV_QPS_RTR || qp.state == IBV_QPS_RTS;
}

// Bytes in front of the payload in a RECV.
inline std::uint32_t grh_room(const SimQp& qp) {
  return qp.transport == Transport::ud ? static_cast<std::uint32_t>(kUdGrhRoom.value) : 0;
}

inline SimContext& as_sim(ibv_context* context) {
  return *static_cast<SimContext*>(context);
}
inline SimPd& as_sim(ibv_pd* pd) {
  return *static_cast<SimPd*>(pd);
}
inline SimQp& as_sim(ibv_qp* qp) {
  return *static_cast<SimQp*>(qp);
}

// What events carry: a QP as their object, a packet as their argument.
inline SimQp& as_qp(void* object) {
  return *static_cast<SimQp*>(object);
}
inline Packet& as_packet(std::uint64_t argument) {
  return *reinterpret_cast<Packet*>(argument);
}
inline std::uint64_t as_argument(Packet& packet) {
  return reinterpret_cast<std::uint64_t>(&packet);
}

// Arguments of events that only matter in the life of the QP in which they were scheduled.
inline std::uint64_t in_life(std::uint16_t life, std::uint64_t value) {
  return value << 16 | life;
}
inline bool in_this_life(const SimQp& qp, std::uint64_t argument) {
  return static_cast<std::uint16_t>(argument) == qp.life;
}
inline std::uint64_t without_life(std::uint64_t argument) {
  return argument >> 16;
}

}  // namespace verbscope::sim
