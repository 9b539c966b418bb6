// What the responder sends back: acknowledgements, the data of READs, the results of atomics. All of a QP leave in the
// order of the requests, so one whose data are still being read holds up those behind it.
#include <algorithm>
#include <cstring>

#include "nic_sim/nic/nic.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {

Packet& Responder::make_answer(SimQp& qp, Packet::Kind kind, std::uint32_t sequence, std::uint32_t payload) {
  Packet& packet = nic_.packets().take(payload);
  packet.kind = kind;
  packet.transport = qp.transport;
  packet.completes = false;
  packet.counted = false;
  packet.port = qp.port;
  packet.source_node = nic_.node();
  packet.target_node = qp.peer_node;
  packet.source_qp = qp.qp_num;
  packet.target_qp = qp.peer_qp;
  packet.sequence = sequence;
  packet.immediate = qp.settings.min_rnr_timer;
  packet.reads_left = 0;
  packet.generation = qp.generation;
  Bytes bytes = kLrh + kBth + kIcrc + kVcrc + Bytes(round_up(payload, kPayloadPad.value));
  if (qp.has_grh) bytes += kGrh;
  packet.wire_bytes = static_cast<std::uint32_t>(bytes.value);
  return packet;
}

void Responder::send_ready_answers(SimQp& qp) {
  PacketQueue& answers = qp.responder.answers;
  while (!answers.empty() && answers.front().reads_left == 0) {
    Packet& packet = answers.pop();
    if (qp.state == IBV_QPS_RESET || packet.generation != qp.generation) {
      nic_.packets().give_back(packet);
      continue;
    }
    if (packet.counted) --qp.responder.reads;
    nic_.fabric().send(packet);
  }
}

void Responder::acknowledge(SimQp& qp, Packet::Kind kind, std::uint32_t sequence) {
  Packet& packet = make_answer(qp, kind, sequence, 0);
  packet.wire_bytes += static_cast<std::uint32_t>(kAeth.value);
  if (kind == Packet::Kind::ack) {
    qp.responder.unacknowledged = 0;
    ++nic_.counts().acks_sent;
  } else if (kind == Packet::Kind::nak_receiver_not_ready) {
    ++nic_.counts().rnr_naks_sent;
  } else {
    ++nic_.counts().naks_sent;
  }
  qp.responder.answers.push(packet);
  send_ready_answers(qp);
}

// Makes the next packet of the response to the READ in front of the unit's line. False when more are to come: the unit
// works on.
bool Responder::respond(SimQp& qp, const Packet& packet) {
  Unit& unit = unit_of(qp);
  const std::uint32_t offset = unit.responses * qp.path_mtu;
  const std::uint32_t payload = std::min(packet.length - offset, qp.path_mtu);
  Packet& answer = make_answer(qp, Packet::Kind::read_response, packet.sequence + unit.responses, payload);
  answer.first = offset == 0;
  answer.last = offset + payload == packet.length;
  answer.remote_address = packet.remote_address + offset;
  answer.rkey = packet.rkey;
  answer.counted = answer.last && !unit.repeats;
  if (answer.first || answer.last) answer.wire_bytes += static_cast<std::uint32_t>(kAeth.value);
  qp.responder.answers.push(answer);
  if (payload > 0) {
    answer.reads_left = 1;
    nic_.bus().dma_read(answer.remote_address, payload, &response_read, &qp, as_argument(answer));
  } else {
    send_ready_answers(qp);
  }
  if (answer.last) {
    ++nic_.counts().reads_served;
    unit.responses = 0;
    return true;
  }
  ++unit.responses;
  const Picos time = nic_.profile().nic.next_packet;
  unit.time.busy += time;
  nic_.engine().schedule(nic_.engine().now() + time, &service_done, &qp, as_argument(unit.line.front()));
  return false;
}

void Responder::response_read(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  Packet& answer = as_packet(argument);
  const bool there = still_there(qp, answer, answer.payload);
  if (there) std::memcpy(answer.data, reinterpret_cast<const std::byte*>(answer.remote_address), answer.payload);
  finish_answer(qp, answer, there);
}

// Whether the region that the request named has not been deregistered meanwhile.
bool Responder::still_there(const SimQp& qp, const Packet& answer, std::uint64_t bytes) {
  return qp.nic->regions().grants(*qp.pd, answer.rkey, answer.remote_address, bytes, 0);
}

// The answer may leave; if its region is gone it refuses, and the QP fails.
void Responder::finish_answer(SimQp& qp, Packet& answer, bool there) {
  const bool fails = !there && answer.generation == qp.generation && receiving(qp);
  if (!there) answer.kind = Packet::Kind::nak_access;
  answer.reads_left = 0;
  qp.nic->responder().send_ready_answers(qp);
  if (fails) qp.nic->fail_qp(qp);
}

// Reads the operand when the slot of the address is free. False: the packet waits in front of its unit's line for it.
bool Responder::begin_atomic(SimQp& qp, Packet& packet) {
  Unit& unit = unit_of(qp);
  if (!nic_.atomic_slots().take(nic_.atomic_slots().slot_of(packet.remote_address), qp.responder.unit,
                                nic_.engine().now())) {
    ++nic_.counts().atomic_slot_waits;
    unit.slot_wanted_at = nic_.engine().now();
    return false;
  }
  start_atomic(qp, packet);
  return true;
}

void Responder::start_atomic(SimQp& qp, const Packet& packet) {
  Packet& answer =
      make_answer(qp, Packet::Kind::atomic_response, packet.sequence, static_cast<std::uint32_t>(kAtomicOperand.value));
  answer.wire_bytes += static_cast<std::uint32_t>(kAeth.value);  // AtomicAckETH is the 8 bytes of the result
  answer.verb = packet.verb;
  answer.remote_address = packet.remote_address;
  answer.rkey = packet.rkey;
  answer.operand = packet.operand;
  answer.compare = packet.compare;
  answer.counted = true;
  answer.reads_left = 1;
  ++qp.responder.atomics;
  qp.responder.answers.push(answer);
  nic_.bus().dma_read(packet.remote_address, kAtomicOperand.value, &operand_read, &qp, as_argument(answer));
}

void Responder::operand_read(void* object, std::uint64_t argument) {
  const Nic& nic = *as_qp(object).nic;
  Engine& engine = as_qp(object).nic->engine();
  engine.schedule(engine.now() + nic.profile().nic.atomic_operation, &operand_handled, object, argument);
}

void Responder::operand_handled(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  Nic& nic = *qp.nic;
  Packet& answer = as_packet(argument);
  std::uint64_t before = 0;
  const bool there = still_there(qp, answer, sizeof before);
  if (there) {
    std::memcpy(&before, reinterpret_cast<const std::byte*>(answer.remote_address), sizeof before);
    std::uint64_t after = before + answer.operand;
    if (answer.verb == Verb::compare_swap) after = before == answer.compare ? answer.operand : before;
    Packet& write = nic.packets().take(sizeof after);
    write.rkey = answer.rkey;
    std::memcpy(write.data, &after, sizeof after);
    nic.payload_writer().write(answer.remote_address, write);
    ++nic.counts().atomics_served;
    if (answer.generation == qp.generation) qp.results.keep(answer.sequence, before);
  }
  std::memcpy(answer.data, &before, sizeof before);
  Responder& self = nic.responder();
  self.give_up_slot(answer.remote_address);
  self.atomic_ended(qp, answer.generation);
  finish_answer(qp, answer, there);
}

void Responder::atomic_ended(SimQp& qp, std::uint16_t generation) {
  if (generation != qp.generation) return;
  Unit& unit = unit_of(qp);
  if (--qp.responder.atomics == 0 && unit.waits_for_atomic && in_front(unit, qp)) resume(unit);
}

// The unit that has waited longest for the slot has it now; the packet in front of its line begins.
void Responder::give_up_slot(std::uint64_t address) {
  AtomicSlots& slots = nic_.atomic_slots();
  const std::uint64_t slot = slots.slot_of(address);
  const Picos now = nic_.engine().now();
  for (int number = slots.give_up(slot, now); number != AtomicSlots::kNobody; number = slots.give_up(slot, now)) {
    Unit& unit = units_[static_cast<std::size_t>(number)];
    Packet& packet = unit.line.front();
    SimQp* qp = nic_.qps().find(packet.target_qp);
    nic_.counts().atomic_slot_wait_ps += static_cast<std::uint64_t>((now - unit.slot_wanted_at).count());
    const bool wanted = qp != nullptr && receiving(*qp) && unit.generation == qp->generation;
    if (wanted) start_atomic(*qp, packet);
    front_is_done(unit);
    if (wanted) return;
  }
}

// The result that was kept. The operation itself is not done twice.
void Responder::repeat_atomic(SimQp& qp, const Packet& packet) {
  const AtomicResults::Result* result = qp.results.find(packet.sequence);
  if (result == nullptr) return;
  Packet& answer =
      make_answer(qp, Packet::Kind::atomic_response, packet.sequence, static_cast<std::uint32_t>(kAtomicOperand.value));
  answer.wire_bytes += static_cast<std::uint32_t>(kAeth.value);
  std::memcpy(answer.data, &result->value, sizeof result->value);
  qp.responder.answers.push(answer);
  send_ready_answers(qp);
}

}  // namespace verbscope::sim
