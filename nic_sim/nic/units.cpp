#include "nic_sim/nic/units.hpp"

#include <algorithm>

namespace verbscope::sim {

namespace {

// True if the next WQE must wait for a READ or an atomic before it: fenced, or too many are outstanding.
bool waits_for_reads(SimQp& qp) {
  if (qp.requester.packet_of_next > 0) return false;
  const SendWqe& wqe = qp.send.at(qp.send.next);
  const std::uint64_t under_way = qp.reads.count();
  const std::uint32_t limit = std::clamp<std::uint32_t>(qp.settings.max_rd_atomic, 1, kMaxReads);
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
  while (can_serve()) {
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

// True if the packet belongs to this QP's connection, or is a datagram with its Q_Key.
bool is_for(const SimQp& qp, const Packet& packet) {
  if (!receiving(qp) || qp.transport != packet.transport || qp.port != packet.port) return false;
  if (!facts(packet.transport).connected) return qp.qkey == packet.qkey;
  return qp.peer_qp == packet.source_qp && qp.peer_node == packet.source_node;
}

}  // namespace

ReceivingUnits::ReceivingUnits(Engine& engine, PcieBus& bus, Fabric& fabric, PacketPool& pool, NicCounts& counts,
                               const QpTable& qps, const MulticastGroups& groups, Congestion& congestion, int units,
                               QpContexts& contexts, const ReceiveEvents& events)
    : engine_(engine),
      bus_(bus),
      fabric_(fabric),
      pool_(pool),
      packets_(pool.memory()),
      counts_(counts),
      qps_(qps),
      groups_(groups),
      congestion_(congestion),
      contexts_(contexts),
      events_(events),
      units_(static_cast<std::size_t>(units)),
      idle_(units) {}

// Each QP that the packet's group reaches gets a copy, which is no longer in the input buffer.
bool ReceivingUnits::receive_for_group(Packet& packet) {
  if (packet.target_qp != kMulticastQp || !is_multicast(packet)) return accept(nullptr, packet);
  bool joined_line = false;
  for (const SimQp* qp : groups_.members(packet)) {
    if (!groups_.reaches(*qp, packet)) continue;
    Packet& copy = pool_.copy_of(packet);
    copy.target_qp = qp->qp_num;
    copy.wire_bytes = 0;
    joined_line |= receive(copy);
  }
  fabric_.release(packet);
  return joined_line;
}

bool ReceivingUnits::accept(SimQp* qp, Packet& packet) {
  if (packet.kind == Packet::Kind::congestion_notification) {
    if (qp != nullptr && receiving(*qp)) congestion_.on_cnp(*qp);
    fabric_.release(packet);
    return false;
  }
  const bool answer = is_answer(packet);
  if (qp == nullptr || !(answer || is_for(*qp, packet))) {
    if (!answer) ++counts_.dropped_refused;
    fabric_.release(packet);
    return false;
  }
  if (packet.marked) congestion_.on_marked(*qp, packet);
  if (!answer) ++qp->arrivals.requests;
  qp->arrivals.line.push(packet);
  join_line(*qp);
  return true;
}

void ReceivingUnits::join_line(SimQp& qp) {
  const Arrivals& arrivals = qp.arrivals;
  if (!arrivals.queued && !arrivals.served && !arrivals.line.empty()) line_.push(qp);
}

SimQp* ReceivingUnits::serve_next() {
  while (can_serve()) {
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
    return &qp;
  }
  return nullptr;
}

// Drops the first packet if it is a request and the QP no longer receives.
bool ReceivingUnits::refuse_front(SimQp& qp) {
  PacketQueue& line = qp.arrivals.line;
  if (line.empty() || is_answer(line.front()) || receiving(qp)) return false;
  --qp.arrivals.requests;
  ++counts_.dropped_refused;
  fabric_.release(line.pop(packets_));
  return true;
}

// All units move an equal share of the chunks, at least one. None of the helpers is taken from a QP that waits.
Picos ReceivingUnits::occupy_with_helpers(SimQp& qp, const PacketWork& work) {
  ReceivingUnit& unit = of(qp);
  std::uint32_t units = 1;
  for (; units < work.chunks && line_.empty() && !idle_.empty(); ++units) {
    const std::uint32_t helper = idle_.take_any();
    units_[helper].helper = std::exchange(unit.helper, helper);
  }
  const Picos share = std::min(work.all_chunks, std::max(work.full_chunk, work.all_chunks / units));
  for (std::uint32_t each = unit.helper; each != ReceivingUnit::kNoUnit; each = units_[each].helper) {
    units_[each].time.busy += share;
    qp.arrivals.time.busy += share;
  }
  return occupy(qp, work.alone + share);
}

void ReceivingUnits::note_waited(ReceivingUnit& unit) {
  unit.time.waited += engine_.now() - unit.waiting_since;
  unit.qp->arrivals.time.waited += engine_.now() - unit.waiting_since;
  unit.waiting_since = engine_.now();
}

// Detaches the unit from its QP, which joins the line if it has packets.
void ReceivingUnits::detach(ReceivingUnit& unit) {
  unit.qp->arrivals.served = false;
  join_line(*unit.qp);
  unit.qp = nullptr;
}

Packet& ReceivingUnits::take_answer(ReceivingUnit& unit) {
  Packet& packet = unit.qp->arrivals.line.pop(packets_);
  detach(unit);
  return packet;
}

bool ReceivingUnits::request_done(ReceivingUnit& unit) {
  Packet& packet = unit.qp->arrivals.line.pop(packets_);
  --unit.qp->arrivals.requests;
  ++counts_.packets_received;
  fabric_.release(packet);
  detach(unit);
  return work_done(unit);
}

bool ReceivingUnits::work_done(ReceivingUnit& unit) {
  const Picos credits = bus_.posted_credit_at();
  if (credits > engine_.now()) {
    engine_.schedule(credits, events_.unit_free, events_.responder, number_of(unit));
    return false;
  }
  give_back(number_of(unit));
  return true;
}

void ReceivingUnits::forget(SimQp& qp) {
  ReceivingUnit& unit = of(qp);
  if ((!unit.waits_for_recv && !unit.waits_for_atomic) || unit.qp != &qp) return;
  unit.waits_for_recv = unit.waits_for_atomic = false;
  detach(unit);
  engine_.schedule(engine_.now(), events_.unit_free, events_.responder, number_of(unit));
}

std::vector<UnitTime> ReceivingUnits::times() const {
  std::vector<UnitTime> times;
  for (const ReceivingUnit& unit : units_) times.push_back(unit.time);
  return times;
}

}  // namespace verbscope::sim
