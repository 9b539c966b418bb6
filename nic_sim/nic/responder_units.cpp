#include "nic_sim/nic/responder_units.hpp"

#include "nic_sim/nic/request_processor.hpp"

namespace verbscope::sim {
namespace {

// Whether the packet is of this QP's connection, or a datagram that it takes.
bool is_for(const SimQp& qp, const Packet& packet) {
  if (!receiving(qp) || qp.transport != packet.transport || qp.port != packet.port) return false;
  if (!facts(packet.transport).connected) return qp.qkey == packet.qkey;
  return qp.peer_qp == packet.source_qp && qp.peer_node == packet.source_node;
}

}  // namespace

void ResponderUnits::bind(SimQp& qp) {
  qp.responder.unit = next_unit_;
  next_unit_ = (next_unit_ + 1) % static_cast<int>(units_.size());
}

void ResponderUnits::receive(Packet& packet) {
  SimQp* qp = qps_.find(packet.target_qp);
  if (qp == nullptr || !is_for(*qp, packet)) {
    ++counts_.dropped_refused;
    return fabric_.done_with(packet);
  }
  ++qp->responder.waiting_packets;
  ResponderUnit& unit = of(*qp);
  unit.line.push(packet);
  take_next(unit);
}

void ResponderUnits::take_next(ResponderUnit& unit) {
  while (!unit.busy && !unit.line.empty()) {
    Packet& packet = unit.line.front();
    SimQp* qp = qps_.find(packet.target_qp);
    if (qp == nullptr || !receiving(*qp)) {
      unit.line.pop();
      if (qp != nullptr) --qp->responder.waiting_packets;
      ++counts_.dropped_refused;
      fabric_.done_with(packet);
      continue;
    }
    unit.busy = true;
    unit.waiting_since = engine_.now();
    unit.translated = false;
    unit.responses = 0;
    processor_.take_up(*qp, packet);
  }
}

void ResponderUnits::note_waited(ResponderUnit& unit) {
  unit.time.waited += engine_.now() - unit.waiting_since;
  unit.waiting_since = engine_.now();
}

void ResponderUnits::front_is_done(ResponderUnit& unit) {
  Packet& packet = unit.line.pop();
  if (SimQp* qp = qps_.find(packet.target_qp)) --qp->responder.waiting_packets;
  ++counts_.packets_received;
  if (packet.kept) {
    fabric_.taken_in(packet);
  } else {
    fabric_.done_with(packet);
  }
  const Picos free_at = bus_.posted_credit_at();
  if (free_at > engine_.now()) return free_later(unit, free_at);
  unit.busy = false;
  take_next(unit);
}

void ResponderUnits::free_later(ResponderUnit& unit, Picos when) {
  engine_.schedule(when, &unit_free, this, static_cast<std::uint64_t>(&unit - units_.data()));
}

void ResponderUnits::unit_free(void* object, std::uint64_t number) {
  ResponderUnits& self = *static_cast<ResponderUnits*>(object);
  ResponderUnit& unit = self.units_[number];
  unit.busy = false;
  self.take_next(unit);
}

// The RECV or the atomic that the packet in front waited for is there.
void ResponderUnits::resume(ResponderUnit& unit) {
  if (unit.waits_for_recv) note_waited(unit);
  unit.waits_for_recv = unit.waits_for_atomic = false;
  processor_.begin(*qp_in_front(unit), unit.line.front());
}

void ResponderUnits::recvs_came(SimQp& qp) {
  ResponderUnit& unit = of(qp);
  if (unit.waits_for_recv && qp_in_front(unit) == &qp) resume(unit);
}

void ResponderUnits::recvs_came(const SimSrq& srq) {
  for (ResponderUnit& unit : units_) {
    if (!unit.waits_for_recv) continue;
    const SimQp* qp = qp_in_front(unit);
    if (qp != nullptr && qp->srq == &srq) resume(unit);
  }
}

void ResponderUnits::atomics_ended(SimQp& qp) {
  ResponderUnit& unit = of(qp);
  if (unit.waits_for_atomic && qp_in_front(unit) == &qp) resume(unit);
}

void ResponderUnits::forget(const SimQp& qp) {
  ResponderUnit& unit = of(qp);
  if ((!unit.waits_for_recv && !unit.waits_for_atomic) || qp_in_front(unit) != &qp) return;
  unit.waits_for_recv = unit.waits_for_atomic = false;
  free_later(unit, engine_.now());
}

std::vector<UnitTime> ResponderUnits::times() const {
  std::vector<UnitTime> times;
  for (const ResponderUnit& unit : units_) times.push_back(unit.time);
  return times;
}

}  // namespace verbscope::sim
