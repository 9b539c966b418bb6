#include "nic_sim/nic/unit_scheduler.hpp"

#include <algorithm>

#include "nic_sim/nic/wqe_processor.hpp"

namespace verbscope::sim {
namespace {

// Whether the WQE that comes next must wait until a READ or an atomic before it has ended.
bool waits_for_reads(SimQp& qp) {
  if (qp.requester.packet_of_next > 0) return false;
  const SendWqe& wqe = qp.send.at(qp.send.next);
  const std::uint64_t under_way = qp.reads.count();
  const std::uint32_t limit = std::clamp<std::uint32_t>(qp.settings.max_rd_atomic, 1, kMostReads);
  return (wqe.fenced && under_way > 0) || (wqe.wants_response() && under_way >= limit);
}

}  // namespace

void UnitScheduler::bind(SimQp& qp) {
  qp.requester.unit = next_unit_;
  next_unit_ = (next_unit_ + 1) % static_cast<int>(units_.size());
}

void UnitScheduler::activate(SimQp& qp) {
  RequesterState& state = qp.requester;
  Unit& unit = unit_of(qp);
  if (state.queued || state.must_wait() || unit.serving == &qp || qp.state != IBV_QPS_RTS) return;
  if (!qp.send.has_work() || waits_for_reads(qp)) return;
  state.queued = true;
  state.next_in_line = nullptr;
  (unit.first == nullptr ? unit.first : unit.last->requester.next_in_line) = &qp;
  unit.last = &qp;
  if (unit.serving == nullptr) take_next(unit);
}

void UnitScheduler::take_next(Unit& unit) {
  while (unit.serving == nullptr && unit.first != nullptr) {
    SimQp& qp = *unit.first;
    unit.first = qp.requester.next_in_line;
    qp.requester.queued = false;
    if (qp.state != IBV_QPS_RTS || qp.requester.waits_for_rnr || !qp.send.has_work()) continue;
    if (!processor_.at_hand(qp)) continue;
    unit.serving = &qp;
    unit.serving_since = engine_.now();
    processor_.take_up(qp);
  }
}

Picos UnitScheduler::occupy(Unit& unit, Picos time) {
  unit.free_at = std::max(unit.free_at, engine_.now()) + time;
  unit.time.busy += time;
  return unit.free_at;
}

Picos UnitScheduler::begin_work(const SimQp& qp, Picos time) {
  Unit& unit = unit_of(qp);
  unit.time.waited += engine_.now() - unit.serving_since;
  return occupy(unit, time);
}

void UnitScheduler::work_done(SimQp& qp) {
  Unit& unit = unit_of(qp);
  unit.serving = nullptr;
  activate(qp);
  take_next(unit);
}

void UnitScheduler::note_held_up(const SimQp& qp, Picos since) {
  Unit& unit = unit_of(qp);
  if (unit.serving != nullptr || unit.first != nullptr) return;
  const Picos now = engine_.now();
  unit.time.held_up += now - std::min(now, std::max({since, unit.free_at, unit.held_up_until}));
  unit.held_up_until = now;
}

std::vector<UnitTime> UnitScheduler::times() const {
  std::vector<UnitTime> times;
  for (const Unit& unit : units_) times.push_back(unit.time);
  return times;
}

}  // namespace verbscope::sim
