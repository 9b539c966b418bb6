#include "nic_sim/nic/unit_scheduler.hpp"

#include <algorithm>

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
  qp.requester.unit = qp.requester.fetch_share = next_unit_;
  next_unit_ = (next_unit_ + 1) % static_cast<std::uint32_t>(units_.size());
}

void UnitScheduler::activate(SimQp& qp) {
  const RequesterState& state = qp.requester;
  if (state.queued || state.served || state.must_wait() || qp.state != IBV_QPS_RTS) return;
  if (!qp.send.has_work() || waits_for_reads(qp)) return;
  line_.push(qp);
  serve();
}

void UnitScheduler::serve() {
  while (!line_.empty() && !idle_.empty()) {
    SimQp& qp = line_.pop();
    if (qp.state != IBV_QPS_RTS || qp.requester.waits_for_rnr || !qp.send.has_work()) continue;
    if (!whole_.wqe_at_hand(qp)) continue;
    qp.requester.served = true;
    qp.requester.unit = idle_.take(qp.requester.unit);
    unit_of(qp).serving_since = engine_.now();
    whole_.take_up_wqe(qp);
  }
}

Picos UnitScheduler::begin_work(SimQp& qp, Picos time) {
  Unit& unit = unit_of(qp);
  const Picos waited = engine_.now() - unit.serving_since;
  for (UnitTime* each : {&unit.time, &qp.requester.time}) {
    each->waited += waited;
    each->busy += time;
  }
  unit.free_at = engine_.now() + time;
  return unit.free_at;
}

void UnitScheduler::work_done(SimQp& qp) {
  idle_.give_back(qp.requester.unit);
  qp.requester.served = false;
  activate(qp);
  serve();
}

void UnitScheduler::note_held_up(SimQp& qp, Picos since) {
  if (qp.requester.served || !line_.empty()) return;
  Unit& unit = unit_of(qp);
  const Picos now = engine_.now();
  const Picos time = now - std::min(now, std::max({since, unit.free_at, unit.held_up_until}));
  unit.time.held_up += time;
  qp.requester.time.held_up += time;
  unit.held_up_until = now;
}

std::vector<UnitTime> UnitScheduler::times() const {
  std::vector<UnitTime> times;
  for (const Unit& unit : units_) times.push_back(unit.time);
  return times;
}

}  // namespace verbscope::sim
