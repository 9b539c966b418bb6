#include "nic_sim/nic/units.hpp"

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
}

SimQp* UnitScheduler::next_in_line() {
  while (!line_.empty() && !idle_.empty()) {
    SimQp& qp = line_.pop();
    if (qp.state == IBV_QPS_RTS && !qp.requester.waits_for_rnr && qp.send.has_work()) return &qp;
  }
  return nullptr;
}

void UnitScheduler::give_unit(SimQp& qp) {
  qp.requester.served = true;
  qp.requester.unit = idle_.take(qp.requester.unit);
  unit_of(qp).serving_since = engine_.now();
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

namespace {

// Whether the packet is of this QP's connection, or a datagram that it takes.
bool is_for(const SimQp& qp, const Packet& packet) {
  if (!receiving(qp) || qp.transport != packet.transport || qp.port != packet.port) return false;
  if (!facts(packet.transport).connected) return qp.qkey == packet.qkey;
  return qp.peer_qp == packet.source_qp && qp.peer_node == packet.source_node;
}

}  // namespace

ReceivingUnits::ReceivingUnits(Engine& engine, PcieBus& bus, Fabric& fabric, const PacketMemory& packets,
                               NicCounts& counts, const QpTable& qps, Congestion& congestion, int units,
                               QpContexts& contexts, const WholeNic& whole)
    : engine_(engine),
      bus_(bus),
      fabric_(fabric),
      packets_(packets),
      counts_(counts),
      qps_(qps),
      congestion_(congestion),
      contexts_(contexts),
      whole_(whole),
      units_(static_cast<std::size_t>(units)),
      idle_(units) {}

// Packets of a QP come in the order of their arrival, however far its state is for each.
void ReceivingUnits::receive(Packet& packet) {
  SimQp* qp = qps_.find(packet.target_qp);
  if (qp == nullptr) return take_in(qp, packet);
  Arrivals& arrivals = qp->arrivals;
  arrivals.latest = std::max(engine_.now() + contexts_.distance(*qp), arrivals.latest);
  if (arrivals.latest == engine_.now()) return take_in(qp, packet);
  engine_.schedule(arrivals.latest, &take_in_later, this, as_argument(packet));
}

// The QP may be gone by then.
void ReceivingUnits::take_in_later(void* object, std::uint64_t argument) {
  auto& self = *static_cast<ReceivingUnits*>(object);
  Packet& packet = as_packet(argument);
  self.take_in(self.qps_.find(packet.target_qp), packet);
}

void ReceivingUnits::take_in(SimQp* qp, Packet& packet) {
  if (packet.kind == Packet::Kind::congestion_notification) {
    if (qp != nullptr && receiving(*qp)) congestion_.notified(*qp);
    return fabric_.done_with(packet);
  }
  const bool answer = is_answer(packet);
  if (qp == nullptr || !(answer || is_for(*qp, packet))) {
    if (!answer) ++counts_.dropped_refused;
    return fabric_.done_with(packet);
  }
  if (packet.marked) congestion_.marked(*qp, packet);
  if (!answer) ++qp->arrivals.requests;
  qp->arrivals.line.push(packet);
  get_in_line(*qp);
  serve();
}

void ReceivingUnits::get_in_line(SimQp& qp) {
  const Arrivals& arrivals = qp.arrivals;
  if (!arrivals.queued && !arrivals.served && !arrivals.line.empty()) line_.push(qp);
}

void ReceivingUnits::serve() {
  while (!line_.empty() && !idle_.empty()) {
    SimQp& qp = line_.pop();
    while (refuse_front(qp)) {
    }
    if (qp.arrivals.line.empty()) continue;
    qp.arrivals.served = true;
    qp.arrivals.unit = idle_.take(qp.arrivals.unit);
    ReceivingUnit& unit = of(qp);
    unit.qp = &qp;
    unit.waiting_since = engine_.now();
    unit.translated = false;
    unit.responses = 0;
    whole_.take_up_packet(qp, unit.front());
  }
}

// Drops the packet in front if the QP takes no requests any more.
bool ReceivingUnits::refuse_front(SimQp& qp) {
  PacketQueue& line = qp.arrivals.line;
  if (line.empty() || is_answer(line.front()) || receiving(qp)) return false;
  --qp.arrivals.requests;
  ++counts_.dropped_refused;
  fabric_.done_with(line.pop(packets_));
  return true;
}

void ReceivingUnits::note_waited(ReceivingUnit& unit) {
  unit.time.waited += engine_.now() - unit.waiting_since;
  unit.qp->arrivals.time.waited += engine_.now() - unit.waiting_since;
  unit.waiting_since = engine_.now();
}

// Others may take the QP, whose line may have packets.
void ReceivingUnits::let_go(ReceivingUnit& unit) {
  unit.qp->arrivals.served = false;
  get_in_line(*unit.qp);
  unit.qp = nullptr;
}

Packet& ReceivingUnits::answer_is_taken(ReceivingUnit& unit) {
  Packet& packet = unit.qp->arrivals.line.pop(packets_);
  let_go(unit);
  free_later(unit, engine_.now());
  return packet;
}

void ReceivingUnits::front_is_done(ReceivingUnit& unit) {
  Packet& packet = unit.qp->arrivals.line.pop(packets_);
  --unit.qp->arrivals.requests;
  ++counts_.packets_received;
  if (packet.kept) {
    fabric_.taken_in(packet);
  } else {
    fabric_.done_with(packet);
  }
  let_go(unit);
  free_later(unit, bus_.posted_credit_at());
}

void ReceivingUnits::free_later(ReceivingUnit& unit, Picos when) {
  if (when > engine_.now()) {
    engine_.schedule(when, &unit_free, this, number_of(unit));
  } else {
    unit_free(this, number_of(unit));
  }
}

void ReceivingUnits::unit_free(void* object, std::uint64_t number) {
  ReceivingUnits& self = *static_cast<ReceivingUnits*>(object);
  self.idle_.give_back(static_cast<std::uint32_t>(number));
  self.serve();
}

// The RECV or the atomic that the packet in front waited for is there.
void ReceivingUnits::resume(ReceivingUnit& unit) {
  if (unit.waits_for_recv) note_waited(unit);
  if (unit.waits_for_atomic) note_held_up(unit, engine_.now() - unit.waiting_since);
  unit.waits_for_recv = unit.waits_for_atomic = false;
  whole_.go_on(*unit.qp, unit.front());
}

void ReceivingUnits::recvs_came(SimQp& qp) {
  ReceivingUnit& unit = of(qp);
  if (unit.waits_for_recv && unit.qp == &qp) resume(unit);
}

void ReceivingUnits::recvs_came(const SimSrq& srq) {
  for (ReceivingUnit& unit : units_) {
    if (!unit.waits_for_recv) continue;
    if (unit.qp->srq == &srq) resume(unit);
  }
}

void ReceivingUnits::atomics_ended(SimQp& qp) {
  ReceivingUnit& unit = of(qp);
  if (unit.waits_for_atomic && unit.qp == &qp) resume(unit);
}

void ReceivingUnits::forget(SimQp& qp) {
  ReceivingUnit& unit = of(qp);
  if ((!unit.waits_for_recv && !unit.waits_for_atomic) || unit.qp != &qp) return;
  unit.waits_for_recv = unit.waits_for_atomic = false;
  let_go(unit);
  engine_.schedule(engine_.now(), &unit_free, this, number_of(unit));
}

std::vector<UnitTime> ReceivingUnits::times() const {
  std::vector<UnitTime> times;
  for (const ReceivingUnit& unit : units_) times.push_back(unit.time);
  return times;
}

}  // namespace verbscope::sim
