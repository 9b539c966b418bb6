// The verbs objects of a simulated device. Each derives from its libibverbs structure, so that a program's pointers
// lead straight to it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "common/ring.hpp"
#include "common/units.hpp"
#include "nic_sim/host/polling.hpp"
#include "nic_sim/host/shared_lines.hpp"
#include "nic_sim/link/packet.hpp"
#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/qp_state.hpp"
#include "wire/doorbell.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {

class Nic;

// The doorbell registers of a context, by number, with the lock of each that is shared. On mlx4 there is one, for
// BlueFlame; doorbells need no lock there (rdma-core 44, providers/mlx4/qp.c).
struct SimDoorbells {
  DoorbellRegisters registers;
  std::deque<SpinLock> locks;
  std::uint32_t qps = 0;  // that were given one
};

struct SimContext : ibv_context {
  Nic* nic;
  std::uint32_t doorbell_registers;         // that it shares among QPs; 0: the driver's default
  std::unique_ptr<SimDoorbells> doorbells;  // made for the first QP that has one of them
  std::uint32_t inline_recv;                // bytes, for QPs that are made from now on
  int open_objects;
};

struct SimPd : ibv_pd {
  int users;
  ibv_pd* parent;  // of a parent domain: what is created in it belongs there, and QPs have a doorbell register apart
};

struct SimTd : ibv_td {};

// A translation says where one page of a registered region is: an entry of the NIC's translation cache, when it is
// there.
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
  std::uint8_t priority;
};

// Which completions the program wants to be told of.
enum class Notify : std::uint8_t { none, solicited, any };

// A completion queue keeps the program's request for an event here: one event, then it is forgotten.
struct Arming {
  Notify asked = Notify::none;
  bool at_nic = false;  // the doorbell has arrived
  bool met = false;     // a completion came before it was armed
};

// One entry of a completion queue, and when the program can see it.
struct alignas(64) Completion {
  Picos visible;
  std::uint64_t wr_id;
  SimQp* qp;
  std::uint64_t index;  // place of the work request in its queue: polling frees all up to it
  ibv_wc_status status;
  ibv_wc_opcode opcode;
  std::uint32_t bytes;
  std::uint32_t immediate;
  std::uint32_t source_qp;
  std::uint16_t source_lid;  // the LID of the port that sent it
  unsigned flags;
  bool of_send;
  bool solicited = false;  // the sender asked for an event
};

// Places grow with what is waiting, up to `cqe`: a ring of all of them would leave the processor's caches on every lap.
struct SimCq : ibv_cq, Pollable {
  SimCq() : ibv_cq{}, Pollable(&first_visible) {}

  // These stand behind the queue's waiters: every completion and every poll look at one cache line, apart from
  // libibverbs' locks (two members stand in the padding of the ring).
  std::uint64_t written = 0;
  std::uint64_t polled = 0;
  [[no_unique_address]] Ring<Completion> places;
  bool overrun = false;
  Arming arming;

  int users = 0;    // QPs, counted once for each queue
  DriverLock lock;  // of polls, when several threads poll

  std::uint64_t waiting() const { return written - polled; }
  Completion& at(std::uint64_t n) { return places[n]; }

  static Picos first_visible(const Pollable& queue) {
    const auto& cq = static_cast<const SimCq&>(queue);
    return cq.waiting() > 0 ? cq.places[cq.polled].visible : Picos::max();
  }

  // For the next one that is written. There must be room.
  Completion& next_place() {
    if (waiting() == places.size()) grow();
    return at(written++);
  }
  void grow() {
    Ring<Completion> more(places.size() * 2);
    for (std::uint64_t n = polled; n < written; ++n) more[n] = at(n);
    std::swap(places, more);
  }
};

// One side's state of a QP, an entry of the QP-context cache.
struct QpContext {
  CachePlace place;
  std::uint32_t bytes = 0;
  bool of_responder = false;
  bool gone = false;  // its QP was destroyed
  // The same as an entry of a list of what a cache of twice the size would hold.
  struct Listed {
    CachePlace place;
    std::uint32_t bytes = 0;
  } listed;
};

// A QP as an entry of the states that are nearest to the units.
struct NearContext {
  static constexpr std::uint32_t bytes = 1;  // places are counted
  CachePlace place;
};

struct SimSrq : ibv_srq {
  Nic* nic;
  RecvQueue queue;
  int users = 0;
};

// The attributes of a QP that its data path asks for, by their names in ibv_qp_attr.
struct QpSettings {
  unsigned qp_access_flags = 0;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t timeout = 0;
  std::uint8_t retry_cnt = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t min_rnr_timer = 0;
};

// The members that every event looks at stand together in whole cache lines, those of few in front, beside libibverbs'
// locks, and at the end: simulations of many QPs wait for memory.
struct alignas(64) SimQp : ibv_qp {
  ibv_qp_cap caps;
  SpinLock* doorbell_lock = nullptr;  // that of its doorbell register; null: nobody else writes there
  DriverLock lock;                    // of posts to its send queue
  ibv_qp_ex* builder = nullptr;       // the device's, of a QP that was made for ibv_wr_*
  alignas(64) Nic* nic;
  QpContext requester_context;
  QpContext responder_context;
  NearContext near_context;
  std::uint32_t qkey = 0;
  std::uint32_t path_mtu = 0;
  std::uint32_t peer_node = 0;
  std::uint32_t peer_qp = 0;
  std::uint32_t inline_recv = 0;  // bytes of an arriving payload that go to inline_place instead of their buffer
  InlineReceive inline_place = InlineReceive::nowhere;
  std::uint16_t generation = 0;  // counts resets: what was under way before one comes to nothing
  Transport transport;
  bool signal_all;
  bool has_grh = false;
  std::uint8_t port = 0;      // index from 0
  std::uint8_t priority = 0;  // of its packets, on Ethernet
  QpSettings settings;
  SendQueue send;
  RequesterState requester;
  Arrivals arrivals;
  ResponderState responder;
  ReadsUnderWay reads;
  RecvQueue recv;
  AtomicResults results;
  Pace pace;
  std::vector<ibv_sge> srq_sges;  // those of the RECV that was taken from the shared queue
  ibv_qp_attr attributes;         // the others as modify_qp left them, for query_qp

  SimSrq* shared_queue() const { return static_cast<SimSrq*>(srq); }
  RecvQueue& recv_queue() { return srq == nullptr ? recv : shared_queue()->queue; }
  const RecvQueue& recv_queue() const { return srq == nullptr ? recv : shared_queue()->queue; }
  SimCq& send_completions() const { return *static_cast<SimCq*>(send_cq); }
  SimCq& recv_completions() const { return *static_cast<SimCq*>(recv_cq); }
};

// Whether it takes requests.
inline bool receiving(const SimQp& qp) {
  return qp.state == IBV_QPS_RTR || qp.state == IBV_QPS_RTS;
}

// Bytes in front of the payload in a RECV.
inline std::uint32_t grh_room(const SimQp& qp) {
  return facts(qp.transport).grh_room;
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

}  // namespace verbscope::sim
