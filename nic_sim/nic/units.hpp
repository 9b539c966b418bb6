// Who has which processing unit: QPs that stand in line, units that wait, and the two sides that deal one to the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/link/pcie_bus.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/nic/congestion.hpp"
#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_contexts.hpp"
#include "nic_sim/nic/qp_table.hpp"
#include "nic_sim/nic/receive_events.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

// QPs that stand in line for a unit. `side`: the member of a QP that has `queued` and `next_in_line` for it.
template <auto side>
class QpLine {
 public:
  bool empty() const { return first_ == nullptr; }

  // `qp` is not in line.
  void push(SimQp& qp) {
    (qp.*side).queued = true;
    (qp.*side).next_in_line = nullptr;
    (first_ == nullptr ? first_ : (last_->*side).next_in_line) = &qp;
    last_ = &qp;
  }

  // There is one.
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

// The units of a pool that have nothing to do.

// A list through the units' numbers, and one more place that is both its ends.
class IdleUnits {
 public:
  // All of `units` are idle.
  explicit IdleUnits(int units)
      : end_(static_cast<std::uint32_t>(units)), next_(end_ + std::size_t{1}, end_), before_(next_) {
    for (std::uint32_t unit = 0; unit < end_; ++unit) give_back(unit);
  }

  bool empty() const { return next_[end_] == end_; }

  // Takes `wanted` if it is idle, else the one that has been idle longest: a QP that goes back to the unit that it had
  // last keeps one unit, and many QPs share the work evenly. There is one.
  std::uint32_t take(std::uint32_t wanted) {
    const std::uint32_t unit = next_[wanted] != kBusy ? wanted : next_[end_];
    next_[before_[unit]] = next_[unit];
    before_[next_[unit]] = before_[unit];
    next_[unit] = kBusy;
    return unit;
  }

  void give_back(std::uint32_t unit) {
    next_[unit] = end_;
    before_[unit] = before_[end_];
    next_[before_[end_]] = unit;
    before_[end_] = unit;
  }

 private:
  static constexpr std::uint32_t kBusy = ~0u;

  std::uint32_t end_;
  std::vector<std::uint32_t> next_;  // the one that has been idle longest in front
  std::vector<std::uint32_t> before_;
};

// The requester's processing units and who has them: QPs with work stand in one line, and a unit that is free takes the
// first for one WQE or packet, so that no two units work on one QP, and no unit is idle while another QP waits. Which
// QP a unit takes next, and when, is decided here and nowhere else.
class UnitScheduler {
 public:
  UnitScheduler(Engine& engine, int units) : engine_(engine), units_(static_cast<std::size_t>(units)), idle_(units) {}
  UnitScheduler(const UnitScheduler&) = delete;
  UnitScheduler& operator=(const UnitScheduler&) = delete;

  // Gives a new QP a unit to begin with, and its share of fetching ahead, one after the other.
  void bind(SimQp& qp);

  // Something has changed for `qp`: it gets in line if it has work that a unit can do now and is not there.
  void activate(SimQp& qp);

  // Whether a unit is idle while a QP stands in line.
  bool can_serve() const { return !line_.empty() && !idle_.empty(); }
  // While a unit is idle, takes the next QP with work from the line; null: there is none.
  SimQp* next_in_line();
  // The QP that came from the line has a unit from now on.
  void give_unit(SimQp& qp);

  // All that the unit needs to work on the QP that it has taken is there: it works for `time`. Yields the end.
  Picos begin_work(SimQp& qp, Picos time);
  // The unit has done its work on the QP that it had taken, and is idle.
  void work_done(SimQp& qp);

  // WQEs of `qp` have come that were asked for at `since`, while doorbells wait, for its share may fetch no more ahead:
  // a unit that had nothing to do was held up meanwhile.
  void note_held_up(SimQp& qp, Picos since);
  // So much of the unit's work on `qp` is because a WQE had to be read again.
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

  // The unit that has the QP, or had it last.
  Unit& unit_of(const SimQp& qp) { return units_[qp.requester.unit]; }

  Engine& engine_;
  std::vector<Unit> units_;
  IdleUnits idle_;
  QpLine<&SimQp::requester> line_;  // QPs with work
  std::uint32_t next_unit_ = 0;
};

// The units that take in what arrives: requests, and the answers to what this side asked for. Packets wait at their QP,
// in the order of their arrival, and QPs with packets stand in one line. A unit that is free takes the first QP and is
// with its packet in front until it is done with it; then the QP stands at the end. So no two units work on one QP, and
// no unit is idle while another QP waits.

// One cache line.
struct alignas(64) ReceivingUnit {
  SimQp* qp = nullptr;  // whose packet in front it has, if any
  Picos free_at{0};     // what it works on takes its time one after the other
  bool waits_for_recv = false;
  bool waits_for_atomic = false;  // the packet in front waits for an earlier atomic of its QP
  bool translated = false;        // the addresses of the packet in front have been looked up
  std::uint16_t generation = 0;   // its QP had this when the packet in front was taken up: a reset ends what it began
  bool repeats = false;           // the READ in front was answered before
  std::uint32_t responses = 0;    // packets made of the response to the READ in front
  Picos slot_wanted_at{0};        // when the atomic in front found its slot taken
  Picos waiting_since{0};         // when the packet in front began to wait, or came to the front
  UnitTime time;

  Packet& front() const { return qp->arrivals.line.front(); }
};

class ReceivingUnits {
 public:
  ReceivingUnits(Engine& engine, PcieBus& bus, Fabric& fabric, const PacketMemory& packets, NicCounts& counts,
                 const QpTable& qps, Congestion& congestion, int units, QpContexts& contexts,
                 const ReceiveEvents& events);
  ReceivingUnits(const ReceivingUnits&) = delete;
  ReceivingUnits& operator=(const ReceivingUnits&) = delete;

  // The unit that has the QP, or had it last.
  ReceivingUnit& of(const SimQp& qp) { return units_[static_cast<std::size_t>(qp.arrivals.unit)]; }
  ReceivingUnit& operator[](int number) { return units_[static_cast<std::size_t>(number)]; }

  // The unit of `qp` works for `time` on something of it, as soon as it is free; yields the end.
  Picos occupy(SimQp& qp, Picos time) {
    ReceivingUnit& unit = of(qp);
    unit.free_at = std::max(unit.free_at, engine_.now()) + time;
    unit.time.busy += time;
    qp.arrivals.time.busy += time;
    return unit.free_at;
  }
  // So much of that is because a WQE had to be read again.
  void note_reread(SimQp& qp, Picos time) {
    of(qp).time.rereading += time;
    qp.arrivals.time.rereading += time;
  }

  // A packet has arrived. It comes to the line of its QP when the QP's state is near enough; those of a QP in the order
  // of their arrival, however far its state is for each. Whether it has come there.
  bool receive(Packet& packet) {
    SimQp* qp = qps_.find(packet.target_qp);
    if (qp == nullptr) return take_in(qp, packet);
    Arrivals& arrivals = qp->arrivals;
    arrivals.latest = std::max(engine_.now() + contexts_.distance(*qp), arrivals.latest);
    if (arrivals.latest == engine_.now()) return take_in(qp, packet);
    engine_.schedule(arrivals.latest, events_.state_is_near, events_.responder, as_argument(packet));
    return false;
  }
  bool state_is_near(Packet& packet) { return take_in(qps_.find(packet.target_qp), packet); }  // the QP may be gone

  // Whether a unit is idle while a QP stands in line.
  bool can_serve() const { return !line_.empty() && !idle_.empty(); }
  // While a unit is idle, gives it to the next QP of the line: the packet in front is to be taken up; null: there is
  // none.
  SimQp* serve_next();
  // The unit takes part again.
  void give_back(std::uint64_t number) { idle_.give_back(static_cast<std::uint32_t>(number)); }

  // The time from `waiting_since` to now is the unit's time of waiting.
  void note_waited(ReceivingUnit& unit);
  // The unit was held up for `time` by atomics before the packet in front.
  void note_held_up(ReceivingUnit& unit, Picos time) {
    unit.time.held_up += time;
    unit.qp->arrivals.time.held_up += time;
  }

  // The unit has taken in the answer in front: it leaves the line.
  Packet& answer_is_taken(ReceivingUnit& unit);
  // The unit is done with the request in front. Whether it is idle now, as it is when its posted writes have credits;
  // else unit_is_free happens when they have.
  bool front_is_done(ReceivingUnit& unit);

  // RECVs have come for a QP, for those of a shared receive queue; the last atomic of a QP has ended. Whose packet in
  // front waits for that may go on: `go_on` is called with each such QP.
  template <class GoOn>
  void recvs_came(SimQp& qp, GoOn&& go_on) {
    ReceivingUnit& unit = of(qp);
    if (unit.waits_for_recv && unit.qp == &qp) resume(unit, go_on);
  }
  template <class GoOn>
  void recvs_came(const SimSrq& srq, GoOn&& go_on) {
    for (ReceivingUnit& unit : units_) {
      if (unit.waits_for_recv && unit.qp->srq == &srq) resume(unit, go_on);
    }
  }
  template <class GoOn>
  void atomics_ended(SimQp& qp, GoOn&& go_on) {
    ReceivingUnit& unit = of(qp);
    if (unit.waits_for_atomic && unit.qp == &qp) resume(unit, go_on);
  }

  // The QP is flushed, reset or destroyed. A unit that waits for a RECV or an atomic of this QP goes on: the packet in
  // front finds the QP gone. (One that waits for a slot finds that when it has the slot.)
  void forget(SimQp& qp);

  // The times of each unit so far.
  std::vector<UnitTime> times() const;

 private:
  // `qp`: that the packet names; null: there is none.
  bool take_in(SimQp* qp, Packet& packet);
  std::uint32_t number_of(const ReceivingUnit& unit) const { return static_cast<std::uint32_t>(&unit - units_.data()); }
  void get_in_line(SimQp& qp);
  void let_go(ReceivingUnit& unit);
  bool refuse_front(SimQp& qp);
  template <class GoOn>
  void resume(ReceivingUnit& unit, GoOn&& go_on) {
    if (unit.waits_for_recv) note_waited(unit);
    if (unit.waits_for_atomic) note_held_up(unit, engine_.now() - unit.waiting_since);
    unit.waits_for_recv = unit.waits_for_atomic = false;
    go_on(*unit.qp);
  }

  Engine& engine_;
  PcieBus& bus_;
  Fabric& fabric_;
  const PacketMemory& packets_;
  NicCounts& counts_;
  const QpTable& qps_;
  Congestion& congestion_;
  QpContexts& contexts_;
  const ReceiveEvents& events_;
  std::vector<ReceivingUnit> units_;
  IdleUnits idle_;
  QpLine<&SimQp::arrivals> line_;
};

}  // namespace verbscope::sim
