#include "nic_sim/nic/responder.hpp"

#include <algorithm>

#include "nic_sim/nic/nic.hpp"

namespace verbscope::sim {

Responder::Responder(Nic& nic) : nic_(nic), units_(static_cast<std::size_t>(nic.profile().nic.responder_units)) {}

std::vector<UnitTime> Responder::unit_times() const {
  std::vector<UnitTime> times;
  for (const Unit& unit : units_) times.push_back(unit.time);
  return times;
}

void Responder::bind(SimQp& qp) {
  qp.responder.unit = next_unit_;
  next_unit_ = (next_unit_ + 1) % static_cast<int>(units_.size());
}

void Responder::receive(Packet& packet) {
  SimQp* qp = nic_.qps().find(packet.target_qp);
  const bool connected = packet.transport != Transport::ud;
  if (qp == nullptr || !receiving(*qp) || qp->transport != packet.transport || qp->port != packet.port ||
      (!connected && qp->qkey != packet.qkey) ||
      (connected && (qp->peer_qp != packet.source_qp || qp->peer_node != packet.source_node))) {
    ++nic_.counts().dropped_refused;
    return nic_.fabric().done_with(packet);
  }
  ++qp->responder.waiting_packets;
  Unit& unit = unit_of(*qp);
  unit.line.push(packet);
  serve_next(unit);
}

void Responder::serve_next(Unit& unit) {
  while (!unit.busy && !unit.line.empty()) {
    Packet& packet = unit.line.front();
    SimQp* qp = nic_.qps().find(packet.target_qp);
    if (qp == nullptr || !receiving(*qp)) {
      unit.line.pop();
      if (qp != nullptr) --qp->responder.waiting_packets;
      ++nic_.counts().dropped_refused;
      nic_.fabric().done_with(packet);
      continue;
    }
    unit.busy = true;
    unit.waiting_since = nic_.engine().now();
    unit.translated = false;
    unit.responses = 0;
    if (nic_.contexts().at_hand(qp->responder_context)) {
      begin_service(*qp, packet);
    } else {
      nic_.bus().dma_read(0, qp->responder_context.bytes, &context_read, qp, 0);
    }
  }
}

void Responder::context_read(void* object, std::uint64_t) {
  SimQp& qp = as_qp(object);
  Responder& self = qp.nic->responder();
  Unit& unit = self.unit_of(qp);
  self.note_waited(unit);
  self.begin_service(qp, unit.line.front());
}

void Responder::note_waited(Unit& unit) {
  unit.time.waited += nic_.engine().now() - unit.waiting_since;
  unit.waiting_since = nic_.engine().now();
}

void Responder::begin_service(SimQp& qp, Packet& packet) {
  Unit& unit = unit_of(qp);
  unit.generation = qp.generation;
  const Verdict verdict = judge(qp, packet);
  if (verdict == Verdict::wait_for_recv) {
    unit.waits_for_recv = true;
    ++nic_.counts().recv_waits;
    return;
  }
  if ((verdict == Verdict::take || verdict == Verdict::repeat) && !unit.translated) {
    unit.translated = true;
    if (const std::uint64_t missing = missing_translations(qp, packet); missing > 0) {
      return nic_.bus().dma_read(0, missing * kCacheLine.value, &translations_read, &qp, 0);
    }
  }
  // Requests of a QP take effect in order; only its atomics overlap, which their slots keep apart.
  if (verdict == Verdict::take && qp.responder.atomics > 0 && !is_atomic(packet.verb)) {
    unit.waits_for_atomic = true;
    return;
  }
  const Picos time = service_time(qp, packet, verdict);
  unit.time.busy += time;
  nic_.engine().schedule(nic_.engine().now() + time, &service_done, &qp, as_argument(packet));
}

void Responder::translations_read(void* object, std::uint64_t) {
  context_read(object, 0);
}

// Those that the packet's payload needs, or all that the response to a READ will.
std::uint64_t Responder::missing_translations(SimQp& qp, const Packet& packet) {
  if (packet.verb != Verb::send) {
    const bool whole = packet.verb != Verb::write;
    return nic_.regions().missing_translations(packet.rkey, packet.remote_address + packet.offset,
                                               whole ? packet.length : packet.payload);
  }
  RecvQueue& queue = qp.recv_queue();
  const ResponderState& state = qp.responder;
  const ibv_sge* sge = state.has_recv ? state.recv_sges : queue.sges_of(queue.used);
  const std::uint64_t room = state.has_recv ? state.recv.length : queue.at(queue.used).length;
  std::uint64_t begin = (packet.first ? 0 : state.offset) + grh_room(qp);
  std::uint64_t left = begin + packet.payload > room ? 0 : packet.payload;
  std::uint64_t missing = 0;
  for (; left > 0; ++sge) {
    if (begin >= sge->length) {
      begin -= sge->length;
      continue;
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(left, sge->length - begin);
    missing += nic_.regions().missing_translations(sge->lkey, sge->addr + begin, bytes);
    left -= bytes;
    begin = 0;
  }
  return missing;
}

Picos Responder::service_time(SimQp& qp, const Packet& packet, Verdict verdict) const {
  const NicProfile& profile = nic_.profile().nic;
  if (verdict != Verdict::take && verdict != Verdict::repeat) return profile.receive_packet;
  if (is_atomic(packet.verb)) return profile.receive_packet + profile.receive_dma * 2 + profile.atomic_packet;
  const bool reads = packet.verb == Verb::read && packet.length > 0;
  const bool writes = packet.payload > 0 && !inline_receive(qp, packet);
  const bool completes = packet.last && (packet.verb == Verb::send || packet.has_immediate);
  return profile.receive_packet + profile.receive_dma * ((reads || writes ? 1 : 0) + (completes ? 1 : 0));
}

void Responder::service_done(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  Responder& self = qp.nic->responder();
  Packet& packet = as_packet(argument);
  Unit& unit = self.unit_of(qp);
  if (receiving(qp) && unit.generation == qp.generation) {
    const Verdict verdict = unit.responses > 0 ? Verdict::repeat : self.judge(qp, packet);
    if (unit.responses == 0) unit.repeats = verdict == Verdict::repeat;
    if (verdict == Verdict::wait_for_recv) {  // another QP took the shared queue's last RECV meanwhile
      unit.waits_for_recv = true;
      unit.waiting_since = self.nic_.engine().now();
      return;
    }
    if (verdict == Verdict::repeat) {
      if (!self.respond(qp, packet)) return;
    } else if (verdict == Verdict::take) {
      if (!self.take(qp, packet)) return;
    } else {
      self.refuse(qp, packet, verdict);
    }
  }
  self.front_is_done(unit);
}

// The unit is done with the packet in front and goes on as soon as its posted writes have credits.
void Responder::front_is_done(Unit& unit) {
  Packet& packet = unit.line.pop();
  if (SimQp* qp = nic_.qps().find(packet.target_qp)) --qp->responder.waiting_packets;
  ++nic_.counts().packets_received;
  if (packet.kept) {
    nic_.fabric().taken_in(packet);
  } else {
    nic_.fabric().done_with(packet);
  }
  const Picos free_at = nic_.bus().posted_credit_at();
  if (free_at > nic_.engine().now()) return free_later(unit, free_at);
  unit.busy = false;
  serve_next(unit);
}

void Responder::free_later(Unit& unit, Picos when) {
  nic_.engine().schedule(when, &unit_free, this, static_cast<std::uint64_t>(&unit - units_.data()));
}

void Responder::unit_free(void* object, std::uint64_t number) {
  Responder& self = *static_cast<Responder*>(object);
  Unit& unit = self.units_[number];
  unit.busy = false;
  self.serve_next(unit);
}

// False: the packet stays in front, for more responses or for a slot.
bool Responder::take(SimQp& qp, Packet& packet) {
  ResponderState& state = qp.responder;
  const std::uint64_t spans =
      packet.verb == Verb::read && packet.length > 0 ? divide_up(packet.length, qp.path_mtu) : 1;
  state.expected = packet.sequence + static_cast<std::uint32_t>(spans);
  state.nak_sent = false;
  state.dropping = false;
  if (packet.verb == Verb::read || is_atomic(packet.verb)) {
    ++state.reads;
    state.unacknowledged = 0;  // the response acknowledges what came before
    return packet.verb == Verb::read ? respond(qp, packet) : begin_atomic(qp, packet);
  }
  if (packet.first) state.offset = 0;
  if (takes_recv(qp, packet)) {
    take_recv(qp);
    if (!packet.last) prefetch(qp);  // another message may need the next before this one is complete
  }
  ibv_wc_status status = IBV_WC_SUCCESS;
  if (packet.verb == Verb::send) {
    status = deliver(qp, packet);
  } else if (packet.payload > 0) {
    nic_.payload_writer().write(packet.remote_address + packet.offset, packet);
  }
  state.offset += packet.payload;
  if (status != IBV_WC_SUCCESS) {
    complete_recv(qp, packet, status);
    const bool too_long = status == IBV_WC_LOC_LEN_ERR;
    if (qp.transport == Transport::rc) {
      acknowledge(qp, too_long ? Packet::Kind::nak_invalid : Packet::Kind::nak_operation, packet.sequence);
    }
    nic_.fail_qp(qp);
  } else if (packet.last) {
    finish_message(qp, packet);
  }
  return true;
}

void Responder::finish_message(SimQp& qp, const Packet& packet) {
  if (packet.verb == Verb::write) ++nic_.counts().writes_received;
  if (packet.verb == Verb::send || packet.has_immediate) {
    complete_recv(qp, packet, IBV_WC_SUCCESS);
    ++nic_.counts().messages_received;
  }
  if (qp.transport != Transport::rc) return;
  ++qp.responder.unacknowledged;
  if (qp.responder.waiting_packets == 1 ||  // this one
      qp.responder.unacknowledged >= static_cast<std::uint32_t>(nic_.profile().nic.ack_coalescing)) {
    acknowledge(qp, Packet::Kind::ack, packet.sequence);
  }
}

void Responder::refuse(SimQp& qp, const Packet& packet, Verdict verdict) {
  ResponderState& state = qp.responder;
  NicCounts& counts = nic_.counts();
  if (verdict == Verdict::duplicate) {
    if (is_atomic(packet.verb)) return repeat_atomic(qp, packet);
    if (packet.last) acknowledge(qp, Packet::Kind::ack, state.expected - 1);
  } else if (verdict == Verdict::gap) {
    if (!state.nak_sent) acknowledge(qp, Packet::Kind::nak_sequence, state.expected);
    state.nak_sent = true;
  } else if (verdict == Verdict::invalid || verdict == Verdict::no_access) {
    const bool invalid = verdict == Verdict::invalid;
    acknowledge(qp, invalid ? Packet::Kind::nak_invalid : Packet::Kind::nak_access, packet.sequence);
    nic_.fail_qp(qp);
  } else if (verdict == Verdict::no_recv && qp.transport == Transport::rc) {
    acknowledge(qp, Packet::Kind::nak_receiver_not_ready, state.expected);
    state.nak_sent = true;  // what follows this packet is out of sequence until the sender goes back
  } else {
    if (verdict == Verdict::no_recv) {
      ++counts.dropped_no_recv;
    } else {
      ++counts.dropped_refused;
    }
    state.dropping = true;  // UC: up to the next first packet
  }
}

bool Responder::in_front(const Unit& unit, const SimQp& qp) const {
  return nic_.qps().find(unit.line.front().target_qp) == &qp;
}

// What the packet in front waited for is there.
void Responder::resume(Unit& unit) {
  if (unit.waits_for_recv) note_waited(unit);
  unit.waits_for_recv = unit.waits_for_atomic = false;
  Packet& packet = unit.line.front();
  begin_service(*nic_.qps().find(packet.target_qp), packet);
}

// A unit that waits for a RECV or an atomic of this QP goes on: the packet in front finds the QP gone. (One that waits
// for a slot finds that when it has the slot.)
void Responder::forget(SimQp& qp) {
  Unit& unit = unit_of(qp);
  if ((!unit.waits_for_recv && !unit.waits_for_atomic) || !in_front(unit, qp)) return;
  unit.waits_for_recv = unit.waits_for_atomic = false;
  free_later(unit, nic_.engine().now());
}

}  // namespace verbscope::sim
