// The requester's processing units and who has them: QPs with work stand in one line, and a unit that is free takes the
// first for one WQE or packet, so that no two units work on one QP, and no unit is idle while another QP waits. Which
// QP a unit takes next, and when, is decided here and nowhere else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/idle_units.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/nic/qp_line.hpp"
#include "nic_sim/nic/whole_nic.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class UnitScheduler {
 public:
  // `whole` leads to who does the work of a unit on the QP that it has taken.
  UnitScheduler(Engine& engine, int units, const WholeNic& whole)
      : engine_(engine), whole_(whole), units_(static_cast<std::size_t>(units)), idle_(units) {}
  UnitScheduler(const UnitScheduler&) = delete;
  UnitScheduler& operator=(const UnitScheduler&) = delete;

  // Gives a new QP a unit to begin with, and its share of fetching ahead, one after the other.
  void bind(SimQp& qp);

  // Something has changed for `qp`: it gets in line if it has work that its unit can do now and is not there.
  void activate(SimQp& qp);

  // All that the unit needs to work on the QP that it has taken is there: it works for `time`. Yields the end.
  Picos begin_work(SimQp& qp, Picos time);
  // The unit has done its work on the QP that it had taken, and takes the next.
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
  void serve();

  Engine& engine_;
  const WholeNic& whole_;
  std::vector<Unit> units_;
  IdleUnits idle_;
  QpLine<&SimQp::requester> line_;  // QPs with work
  std::uint32_t next_unit_ = 0;
};

}  // namespace verbscope::sim
