// The requester's processing units and who has them: each QP belongs to one, and QPs with work stand in line for
// theirs. Which QP a unit takes next, and when, is decided here and nowhere else.
#pragma once

#include <cstddef>
#include <vector>

#include "nic_sim/nic/counts.hpp"
#include "nic_sim/nic/objects.hpp"
#include "nic_sim/time/engine.hpp"

namespace verbscope::sim {

class WqeProcessor;

class UnitScheduler {
 public:
  // `processor` does a unit's work on the QP that it has taken.
  UnitScheduler(Engine& engine, int units, WqeProcessor& processor)
      : engine_(engine), processor_(processor), units_(static_cast<std::size_t>(units)) {}
  UnitScheduler(const UnitScheduler&) = delete;
  UnitScheduler& operator=(const UnitScheduler&) = delete;

  // Binds a new QP to a unit, one after the other.
  void bind(SimQp& qp);

  // Something has changed for `qp`: it gets in line if it has work that its unit can do now and is not there.
  void activate(SimQp& qp);

  // All that the unit needs to work on the QP that it has taken is there: it works for `time`, from when it is free.
  // Yields the end.
  Picos begin_work(const SimQp& qp, Picos time);
  // The unit has done its work on the QP that it had taken, and takes the next.
  void work_done(SimQp& qp);

  // WQEs of `qp` have come that were asked for at `since`, and doorbells wait because its unit may fetch no more ahead:
  // a unit that had nothing to do was held up meanwhile.
  void note_held_up(const SimQp& qp, Picos since);
  // So much of the unit's work on `qp` is because a WQE had to be read again.
  void note_reread(const SimQp& qp, Picos time) { unit_of(qp).time.rereading += time; }

  // The times of each unit so far.
  std::vector<UnitTime> times() const;

 private:
  // One cache line.
  struct alignas(64) Unit {
    SimQp* first = nullptr;  // the line of QPs with work, linked through RequesterState::next_in_line
    SimQp* last = nullptr;
    SimQp* serving = nullptr;
    Picos free_at{0};
    Picos serving_since{0};
    Picos held_up_until{0};
    UnitTime time;
  };

  Unit& unit_of(const SimQp& qp) { return units_[static_cast<std::size_t>(qp.requester.unit)]; }
  Picos occupy(Unit& unit, Picos time);
  void take_next(Unit& unit);

  Engine& engine_;
  WqeProcessor& processor_;
  std::vector<Unit> units_;
  int next_unit_ = 0;
};

}  // namespace verbscope::sim
