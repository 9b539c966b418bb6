// Assignment of processing units to QPs: the line of QPs with work, the list of idle units, and for each side of the
// NIC the scheduler that matches them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/events.hpp"
#include "nic_sim/nic/multicast.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// FIFO of QPs that wait for a unit. `side`: the member of SimQp that holds `queued` and `next_in_line`.
template <auto side>
class QpLine {
 public:
  bool empty() const { return first_ == nullptr; }

  // Precondition: `qp` is not in line.
  void push(SimQp& qp) {
    (qp.*side).queued = true;
    (qp.*side).next_in_line = nullptr;
    (first_ == nullptr ? first_ : (last_->*side).next_in_line) = &qp;
    last_ = &qp;
  }

  // Precondition: not empty.
  SimQp& pop() {
    SimQp& qp = *first_;
    first_ = (qp.*side).next_in_line;
    (qp.*side).queued = false;
    return qp;
  }

 private:
  SimQp* first_ = nullptr;
  SimQp* last_ = nullptr;
};

// The idle units of a pool: a list linked through their numbers, with one extra place that is both ends.
class IdleUnits {
 public:
  // Initially all `units` are idle.
  explicit IdleUnits(int units)
      : end_(static_cast<std::uint32_t>(units)), next_(end_ + std::size_t{1}, end_), before_(next_) {
    for (std::uint32_t unit = 0; unit < end_; ++unit) give_back(unit);
  }

  bool empty() const { return next_[end_] == end_; }

  // Takes `wanted` if it is idle, else the unit that has been idle longest, so that a QP keeps its unit while there are
  // few QPs, and many QPs share the units evenly. Precondition: not empty.
  std::uint32_t take(std::uint32_t wanted) {
    const std::uint32_t unit = next_[wanted] != kBusy ? wanted : next_[end_];
    next_[before_[unit]] = next_[unit];
    before_[next_[unit]] = before_[unit];
    next_[unit] = kBusy;
    return unit;
  }

  // Takes the unit that has been idle longest. Precondition: not empty.
  std::uint32_t take_any() { return take(next_[end_]); }

  void give_back(std::uint32_t unit) {
    next_[unit] = end_;
    before_[unit] = before_[end_];
    next_[before_[end_]] = unit;
    before_[end_] = unit;
  }

 private:
  static constexpr std::uint32_t kBusy = ~0u;

  std::uint32_t end_;
  std::vector<std::uint32_t> next_;  // in front: idle for longest
  std::vector<std::uint32_t> before_;
};

// The requester's processing units. QPs with work wait in one line; an idle unit takes the first QP for one WQE or one
// packet. At most one unit works on a QP, and no unit is idle while a QP waits. This class alone decides which QP a
// unit takes next.
class UnitScheduler {
 public:
  UnitScheduler(Engine& engine, int units) : engine_(engine), units_(static_cast<std::size_t>(units)), idle_(units) {}
  UnitScheduler(const UnitScheduler&) = delete;
  UnitScheduler& operator=(const UnitScheduler&) = delete;

  // Gives a new QP its first unit and its share of the fetch-ahead, round robin.
  void bind(SimQp& qp);

  // Call when something has changed for `qp`: it joins the line if a unit could work on it now.
  void activate(SimQp& qp);

  // True if a unit is idle and a QP is in line.
  bool can_serve() const { return !line_.empty() && !idle_.empty(); }
  // Removes the next QP with work from the line if a unit is idle for it; else returns null.
  SimQp* next_in_line();
  // Assigns an idle unit to the QP from next_in_line.
  void give_unit(SimQp& qp);

  // The unit of `qp` works for `time` from now on. Returns the end.
  Picos begin_work(SimQp& qp, Picos time);
  // The unit of `qp` has finished, and is idle.
  void work_done(SimQp& qp);

  // WQEs of `qp`, requested at `since`, have arrived while doorbells wait because the fetch-ahead share is used up. If
  // its unit was idle meanwhile, it was held up by the fetch.
  void note_held_up(SimQp& qp, Picos since);
  // `time` of the unit's work on `qp` is due to a WQE that had to be read again.
  void note_reread(SimQp& qp, Picos time) {
    unit_of(qp).time.rereading += time;
    qp.requester.time.rereading += time;
  }

  // The times of each unit so far.
  std::vector<UnitTime> times() const;

 private:
  // One cache line.
  struct alignas(64) Unit {
    Picos free_at{0};
    Picos serving_since{0};
    Picos held_up_until{0};
    UnitTime time;
  };

  // The unit that works on the QP, or did last.
  Unit& unit_of(const SimQp& qp) { return units_[qp.requester.unit]; }

  Engine& engine_;
  std::vector<Unit> units_;
  IdleUnits idle_;
  QpLine<&SimQp::requester> line_;  // QPs with work
  std::uint32_t next_unit_ = 0;
};

// The work of a unit on a packet: what it does alone, and the chunks of payload, which idle units help to move.
struct PacketWork {
  Picos alone{0};
  std::uint32_t chunks = 0;
  Picos full_chunk{0};  // time of each chunk but the last, which may be shorter
  Picos all_chunks{0};
};

// A processing unit for arrived packets.
struct alignas(64) ReceivingUnit {
  static constexpr std::uint32_t kNoUnit = ~0u;

  SimQp* qp = nullptr;  // whose first packet it processes, if any
  Picos free_at{0};     // end of the work that it has so far
  bool waits_for_recv = false;
  bool waits_for_atomic = false;   // the first packet waits for an earlier atomic of its QP
  bool translated = false;         // the addresses of the first packet have been translated
  std::uint16_t generation = 0;    // of the QP when work on the first packet began: a reset cancels that work
  bool repeats = false;            // the READ in front was answered before
  std::uint32_t responses = 0;     // response packets made so far for the READ in front
  std::uint32_t helper = kNoUnit;  // the next unit that works on the same packet
  Picos slot_wanted_at{0};         // when the atomic in front found its slot taken
  Picos waiting_since{0};          // when the first packet began to wait, or reached the front
  UnitTime time;

  Packet& front() const { return qp->arrivals.line.front(); }
};

// The units that process arrived packets: requests, and the answers to this side's requests. Packets wait at their QP
// in order of arrival, and QPs with packets wait in one line. An idle unit takes the first QP, processes its first
// packet, and the QP goes to the end of the line. At most one unit serves a QP; other units help it with the chunks of
// a long payload while no QP waits.
class ReceivingUnits {
 public:
  ReceivingUnits(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, NicCounts& counts, const QpTable& qps,
                 const MulticastGroups& groups, Congestion& congestion, int units, QpContexts& contexts,
                 const ReceiveEvents& events);
  ReceivingUnits(const ReceivingUnits&) = delete;
  ReceivingUnits& operator=(const ReceivingUnits&) = delete;

  // The unit that works on the QP, or did last.
  ReceivingUnit& of(const SimQp& qp) { return units_[static_cast<std::size_t>(qp.arrivals.unit)]; }
  ReceivingUnit& operator[](int number) { return units_[static_cast<std::size_t>(number)]; }

  // The unit of `qp` works for `time` as soon as it is free. Returns the end.
  Picos occupy(SimQp& qp, Picos time) {
    ReceivingUnit& unit = of(qp);
    unit.free_at = std::max(unit.free_at, engine_.now()) + time;
    unit.time.busy += time;
    qp.arrivals.time.busy += time;
    return unit.free_at;
  }
  // The same for work on a packet, with the help of idle units.
  Picos occupy(SimQp& qp, const PacketWork& work) {
    if (work.chunks < 2) [[likely]]
      return occupy(qp, work.alone + work.all_chunks);
    return occupy_with_helpers(qp, work);
  }
  // The work on the packet is done: its helpers are idle. Returns true if there were any.
  bool release_helpers(SimQp& qp) {
    ReceivingUnit& unit = of(qp);
    if (unit.helper == ReceivingUnit::kNoUnit) [[likely]]
      return false;
    for (std::uint32_t number = unit.helper; number != ReceivingUnit::kNoUnit;) {
      idle_.give_back(number);
      number = std::exchange(units_[number].helper, ReceivingUnit::kNoUnit);
    }
    unit.helper = ReceivingUnit::kNoUnit;
    return true;
  }
  // `time` of that work is due to a WQE that had to be read again.
  void note_reread(SimQp& qp, Picos time) {
    of(qp).time.rereading += time;
    qp.arrivals.time.rereading += time;
  }

  // A packet has arrived. It joins the line of its QP, at once or when the QP's context is near; packets of a QP keep
  // their order. Returns true if it has joined the line.
  bool receive(Packet& packet) {
    SimQp* qp = qps_.find(packet.target_qp);
    if (qp == nullptr) return receive_for_group(packet);
    Arrivals& arrivals = qp->arrivals;
    arrivals.latest = std::max(engine_.now() + contexts_.delay(*qp), arrivals.latest);
    if (arrivals.latest == engine_.now()) return accept(qp, packet);
    engine_.schedule(arrivals.latest, events_.context_near, events_.responder, as_argument(packet));
    return false;
  }
  bool context_near(Packet& packet) { return accept(qps_.find(packet.target_qp), packet); }  // the QP may be gone

  // True if a unit is idle and a QP is in line.
  bool can_serve() const { return !line_.empty() && !idle_.empty(); }
  // Assigns an idle unit to the next QP in line and returns the QP; null if there is no such pair.
  SimQp* serve_next();
  // The unit is idle again.
  void give_back(std::uint64_t number) { idle_.give_back(static_cast<std::uint32_t>(number)); }

  // Counts the time since `waiting_since` as the unit's waiting time.
  void note_waited(ReceivingUnit& unit);
  // Counts `time` for which earlier atomics held up the first packet.
  void note_held_up(ReceivingUnit& unit, Picos time) {
    unit.time.held_up += time;
    unit.qp->arrivals.time.held_up += time;
  }

  // The unit has processed the answer in front: removes it from the line and returns it. Call work_done afterwards.
  Packet& take_answer(ReceivingUnit& unit);
  // The unit has finished the request in front. Returns what work_done returns.
  bool request_done(ReceivingUnit& unit);
  // The unit has issued the writes of its packet. Returns true if it is idle now. It is not while posted writes lack
  // credits; then the event unit_free follows.
  bool work_done(ReceivingUnit& unit);

  // RECVs were fetched for a QP, or for the QPs of a shared receive queue, or a QP's last atomic has finished. Calls
  // `resume_work` with each QP whose first packet waits for that.
  template <class Resume>
  void recvs_fetched(SimQp& qp, Resume&& resume_work) {
    ReceivingUnit& unit = of(qp);
    if (unit.waits_for_recv && unit.qp == &qp) resume(unit, resume_work);
  }
  template <class Resume>
  void recvs_fetched(const SimSrq& srq, Resume&& resume_work) {
    for (ReceivingUnit& unit : units_) {
      if (unit.waits_for_recv && unit.qp->srq == &srq) resume(unit, resume_work);
    }
  }
  template <class Resume>
  void atomics_ended(SimQp& qp, Resume&& resume_work) {
    ReceivingUnit& unit = of(qp);
    if (unit.waits_for_atomic && unit.qp == &qp) resume(unit, resume_work);
  }

  // The QP is flushed, reset or destroyed. Frees its unit if that waits for a RECV or an atomic. (An atomic that waits
  // for a slot is dropped when it gets the slot.)
  void forget(SimQp& qp);

  // The times of each unit so far.
  std::vector<UnitTime> times() const;

 private:
  // A packet whose target is none of the QPs. Returns true if a QP has joined the line.
  [[gnu::noinline]] bool receive_for_group(Packet& packet);
  // `qp`: the packet's target; null if there is none.
  bool accept(SimQp* qp, Packet& packet);
  std::uint32_t number_of(const ReceivingUnit& unit) const { return static_cast<std::uint32_t>(&unit - units_.data()); }
  Picos occupy_with_helpers(SimQp& qp, const PacketWork& work);
  void join_line(SimQp& qp);
  void detach(ReceivingUnit& unit);
  bool refuse_front(SimQp& qp);
  template <class Resume>
  void resume(ReceivingUnit& unit, Resume&& resume_work) {
    if (unit.waits_for_recv) note_waited(unit);
    if (unit.waits_for_atomic) note_held_up(unit, engine_.now() - unit.waiting_since);
    unit.waits_for_recv = unit.waits_for_atomic = false;
    resume_work(*unit.qp);
  }

  Engine& engine_;
  PcieBus& bus_;
  Fabric& fabric_;
  PacketPool& pool_;
  const PacketMemory& packets_;
  NicCounts& counts_;
  const QpTable& qps_;
  const MulticastGroups& groups_;
  Congestion& congestion_;
  QpContexts& contexts_;
  const ReceiveEvents& events_;
  std::vector<ReceivingUnit> units_;
  IdleUnits idle_;
  QpLine<&SimQp::arrivals> line_;
};

}  // namespace verbscope::sim
