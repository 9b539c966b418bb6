// The verbs objects of a simulated device. Each derives from its libibverbs structure, so that a program's pointer is
// also a pointer to it.
#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "common/ring.hpp"
#include "common/units.hpp"
#include "nic_sim/host/event_channel.hpp"
#include "nic_sim/host/polling.hpp"
#include "nic_sim/host/shared_lines.hpp"
#include "nic_sim/link/packet.hpp"
#include "nic_sim/nic/caches.hpp"
#include "nic_sim/nic/qp_state.hpp"
#include "wire/doorbell.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {

class Nic;

// The memory of another process, to which the simulated adapter has access.
class AddressSpace {
 public:
  AddressSpace() = default;
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  virtual ~AddressSpace() = default;
  // Bytes that the process has unmapped read as zeros, and cannot be written.
  virtual void read(const void* from, std::byte* to, std::uint64_t bytes) const = 0;
  virtual void write(void* to, const std::byte* from, std::uint64_t bytes) const = 0;
};

// The doorbell registers of a context, and a lock for each. mlx4 has one register, locked for BlueFlame only (rdma-core
// 44, providers/mlx4/qp.c).
struct SimDoorbells {
  DoorbellRegisters registers;
  std::deque<SpinLock> locks;
  std::uint32_t qps = 0;  // QPs that have a register
};

// A program's pointer is that to its member `context`.
struct SimContext : verbs_context {
  // `wakeup` and `pollable`: as for EventQueue.
  SimContext(Nic& of, Engine& engine, Picos wakeup, bool pollable)
      : verbs_context{}, nic(&of), async_events(engine, wakeup, pollable) {}

  Nic* nic;
  std::uint32_t doorbell_registers = 0;     // number shared by its QPs; 0: the driver's default
  std::unique_ptr<SimDoorbells> doorbells;  // created with the first QP that has a register
  std::uint32_t inline_recv = 0;            // bytes, for QPs that are created later
  std::uint32_t recvs_per_descriptor = 1;   // of UD QPs that are created later
  int open_objects = 0;
  EventQueue<ibv_async_event> async_events;
  const AddressSpace* space = nullptr;  // of the memory that its program registers; null: this process's own
};

struct SimTd;

struct SimPd : ibv_pd {
  int users;
  SimTd* td;       // of a parent domain; may be null
  ibv_pd* parent;  // set for a parent domain: the PD that owns its objects
};

struct SimTd : ibv_td {
  int users;  // parent domains
};

// The address translation of one page of a registered region: a possible entry of the NIC's translation cache.
struct Translation {
  CachePlace place;
  static constexpr std::uint32_t bytes = 8;  // MTT entry: rdma-core 44 and the mlx4, mlx5 kernel drivers
};

struct SimMr;

// Memory that a key names, by the addresses that requests use.
struct Region {
  // With IBV_ACCESS_* in `access`: local work requests may read it.
  static constexpr int kLocalRead = 1 << 30;

  std::uint64_t begin;  // the address of its first byte in requests
  std::uint64_t bytes;
  std::byte* memory;  // its first byte
  const void* owner;  // the PD whose QPs may use it, or the only QP that may; null: none
  std::uint32_t key;
  int access;
  SimMr* translated_by;  // null: a window that is not bound
  bool is_window;
  const AddressSpace* space;  // of `memory`; null: this process's own

  // True if [address, address + size) is inside.
  bool holds(std::uint64_t address, std::uint64_t size) const {
    return address >= begin && size <= bytes && address - begin <= bytes - size;
  }
  // The host's memory at an address of requests.
  std::byte* at(std::uint64_t address) const { return memory + (address - begin); }
};

struct SimMr : ibv_mr, Region {
  int page_bits;
  std::uint64_t to_pages;  // adding it to a host address yields the offset from the beginning of the first page
  std::vector<Translation> pages;
  int windows = 0;  // bound to it

  // The number of the page of one of its bytes.
  std::uint64_t page_of(const std::byte* byte) const {
    return (reinterpret_cast<std::uint64_t>(byte) + to_pages) >> page_bits;
  }
};

// A memory window. Binding gives it a range of a region, and a new key.
struct SimMw : ibv_mw, Region {};

struct SimAh : ibv_ah {
  std::uint32_t node;    // kEveryNode: a multicast group
  MulticastGroup group;  // set for kEveryNode
  std::uint8_t port;     // index from 0
  GlobalHeader global;
  std::uint8_t priority;
};

// Completions for which the program requests an event.
enum class Notify : std::uint8_t { none, solicited, any };

// A program's request for one event of a completion queue.
struct Arming {
  Notify requested = Notify::none;
  bool at_nic = false;     // the doorbell has arrived
  bool triggered = false;  // a completion was written before the doorbell arrived
};

// One entry of a completion queue.
struct alignas(64) Completion {
  Picos visible;  // from this time on, a poll returns it
  std::uint64_t wr_id;
  SimQp* qp;
  std::uint64_t index;  // of the work request in its queue: a poll frees all up to it
  ibv_wc_status status;
  ibv_wc_opcode opcode;
  std::uint32_t bytes;
  std::uint32_t immediate;
  std::uint32_t source_qp;
  std::uint16_t source_lid;  // LID of the sending port
  unsigned flags;
  bool of_send;
  bool solicited = false;  // the sender asked for an event
};

// The ring grows with the completions that wait, up to `cqe` entries, so that it stays in the processor's caches.
// libibverbs' structure begins as ibv_cq does; its functions are set for extended CQs only.
struct SimCq : ibv_cq_ex, Pollable {
  SimCq() : ibv_cq_ex{}, Pollable(&first_visible) {}

  // These members follow the queue's waiters, so that a completion or a poll accesses one cache line, besides
  // libibverbs' locks. (Two members are in the padding of the ring.)
  std::uint64_t written = 0;
  std::uint64_t polled = 0;
  [[no_unique_address]] Ring<Completion> places;
  bool overrun = false;
  Arming arming;

  int users = 0;    // QPs, counted once for each queue
  DriverLock lock;  // taken by polls if several threads poll
  // Of an extended CQ.
  const Completion* current = nullptr;  // between start_poll and end_poll
  bool single_threaded = false;         // polls take no lock

  ibv_cq* verbs() { return ibv_cq_ex_to_cq(this); }
  std::uint64_t waiting() const { return written - polled; }
  Completion& at(std::uint64_t n) { return places[n]; }

  static Picos first_visible(const Pollable& queue) {
    const auto& cq = static_cast<const SimCq&>(queue);
    return cq.waiting() > 0 ? cq.places[cq.polled].visible : Picos::max();
  }

  // The entry for the next completion. Precondition: fewer than `cqe` wait.
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

inline SimCq& as_sim(ibv_cq_ex* cq) {
  return *static_cast<SimCq*>(cq);
}
inline SimCq& as_sim(ibv_cq* cq) {
  return as_sim(reinterpret_cast<ibv_cq_ex*>(cq));
}

// One side's state of a QP, an entry of the QP-context cache.
struct QpContext {
  CachePlace place;
  std::uint32_t bytes = 0;
  bool of_responder = false;
  bool gone = false;  // its QP was destroyed
  // The same, as an entry of a cache of twice the size, which is simulated only to count its misses.
  struct Shadow {
    CachePlace place;
    std::uint32_t bytes = 0;
  } shadow;
};

// A QP as an entry of the contexts that are near the units.
struct NearContext {
  static constexpr std::uint32_t bytes = 1;  // the capacity is a number of QPs
  CachePlace place;
};

// An XRC domain of a node. Contexts share it through the inode of a file.
struct XrcDomain {
  dev_t device;  // of the file; both 0: of no file
  ino_t inode;
  int handles;
};

struct SimXrcd : ibv_xrcd {
  XrcDomain* domain;
  int users;  // SRQs and QPs
};

struct SimSrq : ibv_srq {
  RecvQueue queue;
  std::uint32_t number = 0;
  std::uint32_t limit = 0;  // fewer RECVs cause an event, once; 0: none
  int users = 0;
  SimXrcd* xrcd = nullptr;  // set for an SRQ of an XRC domain
  ibv_cq* cq = nullptr;     // of an SRQ of an XRC domain: for the completions of its RECVs
};

// The attributes of a QP that the data path reads, with their names in ibv_qp_attr.
struct QpSettings {
  unsigned qp_access_flags = 0;
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t timeout = 0;
  std::uint8_t retry_cnt = 0;
  std::uint8_t rnr_retry = 0;
  std::uint8_t min_rnr_timer = 0;
};

// Members that each event accesses are together in whole cache lines; rarely used ones are in front, next to
// libibverbs' locks, and at the end. Simulations of many QPs are limited by memory accesses.
struct alignas(64) SimQp : ibv_qp {
  ibv_qp_cap caps;
  bool blocks_own_multicast = false;  // its datagrams to groups do not come back to it
  SpinLock* doorbell_lock = nullptr;  // of its doorbell register; null: no other QP uses it
  DriverLock lock;                    // of posts to its send queue
  ibv_qp_ex* builder = nullptr;       // for a QP created for ibv_wr_*
  ibv_pd* created_in = nullptr;       // `pd`, or a parent domain of it
  alignas(64) Nic* nic;
  QpContext requester_context;
  QpContext responder_context;
  NearContext near_context;
  std::uint32_t qkey = 0;
  std::uint32_t path_mtu = 0;
  std::uint32_t peer_node = 0;
  std::uint32_t peer_qp = 0;
  std::uint32_t inline_recv = 0;  // payloads of up to this many bytes arrive at inline_place
  InlineReceive inline_place = InlineReceive::nowhere;
  std::uint16_t generation = 0;  // number of resets: events of an earlier generation have no effect
  Transport transport;
  bool signal_all;
  GlobalHeader global = GlobalHeader::none;  // of its packets
  std::uint8_t port = 0;                     // index from 0
  std::uint8_t priority = 0;                 // of its packets, on Ethernet
  QpSettings settings;
  SendQueue send;
  RequesterState requester;
  Arrivals arrivals;
  ResponderState responder;
  ReadsUnderWay reads;
  RecvQueue recv;
  AtomicResults results;
  Pace pace;
  std::vector<ibv_sge> srq_sges;  // of the current RECV, if it is from a shared queue
  ibv_qp_attr attributes;         // as set by modify_qp, for query_qp
  // Of IBV_QPT_XRC_RECV. `srq`, `recv_cq` and `pd` are those of the last request.
  XrcDomain* domain = nullptr;
  SimXrcd* xrcd = nullptr;  // the handle with which this handle was made
  int handles = 1;          // open ones
  SimQp* opened = nullptr;  // set for a handle that open_qp made: the QP

  SimSrq* shared_queue() const { return static_cast<SimSrq*>(srq); }
  RecvQueue& recv_queue() { return srq == nullptr ? recv : shared_queue()->queue; }
  const RecvQueue& recv_queue() const { return srq == nullptr ? recv : shared_queue()->queue; }
  SimCq& send_completions() const { return as_sim(send_cq); }
  SimCq& recv_completions() const { return as_sim(recv_cq); }
};

// True if the QP accepts requests.
inline bool receiving(const SimQp& qp) {
  return qp.state == IBV_QPS_RTR || qp.state == IBV_QPS_RTS;
}

// Bytes before the payload in a RECV's buffer.
inline std::uint32_t grh_room(const SimQp& qp) {
  return facts(qp.transport).grh_room;
}

inline SimContext& as_sim(ibv_context* context) {
  auto* const first = reinterpret_cast<std::byte*>(context) - offsetof(verbs_context, context);
  return *static_cast<SimContext*>(reinterpret_cast<verbs_context*>(first));
}
inline SimPd& as_sim(ibv_pd* pd) {
  return *static_cast<SimPd*>(pd);
}
// `pd` itself, or the protection domain of a parent domain: the owner of new objects.
inline ibv_pd* owner_of(ibv_pd* pd) {
  return as_sim(pd).parent != nullptr ? as_sim(pd).parent : pd;
}
inline SimSrq& as_sim(ibv_srq* srq) {
  return *static_cast<SimSrq*>(srq);
}
inline SimQp& as_sim(ibv_qp* qp) {
  return *static_cast<SimQp*>(qp);
}

}  // namespace verbscope::sim
