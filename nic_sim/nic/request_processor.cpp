#include "nic_sim/nic/request_processor.hpp"

#include <algorithm>

#include "verbs/sge_walk.hpp"

namespace verbscope::sim {

void RequestProcessor::take_up(SimQp& qp, Packet& packet) {
  if (is_answer(packet)) return take_answer(qp, packet);
  if (contexts_.at_hand(qp.responder_context, &read_done, this, as_argument(qp))) begin(qp, packet);
}

void RequestProcessor::take_answer(SimQp& qp, const Packet& answer) {
  const Picos time =
      is_response(answer) ? profile_.handle_response + further_lines(answer.payload) : profile_.handle_ack;
  engine_.schedule(units_.occupy(qp, time), &answer_taken, this, as_argument(qp));
}

void RequestProcessor::answer_taken(void* object, std::uint64_t argument) {
  RequestProcessor& self = *static_cast<RequestProcessor*>(object);
  SimQp& qp = as_qp(argument);
  self.whole_.take_answer(qp, self.units_.answer_is_taken(self.units_.of(qp)));
}

// The state of the QP, or the translations that were missing, have been read.
void RequestProcessor::read_done(void* object, std::uint64_t argument) {
  RequestProcessor& self = *static_cast<RequestProcessor*>(object);
  SimQp& qp = as_qp(argument);
  ReceivingUnit& unit = self.units_.of(qp);
  self.units_.note_waited(unit);
  self.begin(qp, unit.front());
}

void RequestProcessor::begin(SimQp& qp, Packet& packet) {
  ReceivingUnit& unit = units_.of(qp);
  unit.generation = qp.generation;
  const Verdict verdict = judge(qp, packet, memory_);
  if (verdict == Verdict::wait_for_recv) {
    unit.waits_for_recv = true;
    ++counts_.recv_waits;
    return;
  }
  if ((verdict == Verdict::take || verdict == Verdict::repeat) && !unit.translated) {
    unit.translated = true;
    if (const std::uint64_t missing = missing_translations(qp, packet); missing > 0) {
      return bus_.dma_read(0, missing * kCacheLine.value, &read_done, this, as_argument(qp));
    }
  }
  // Requests of a QP take effect in order; only its atomics overlap, which their slots keep apart.
  if (verdict == Verdict::take && qp.responder.atomics > 0 && !facts(packet.verb).atomic) {
    unit.waits_for_atomic = true;
    return;
  }
  work(qp, service_time(qp, packet, verdict));
}

// How many translations the packet's payload needs that are not there, or the whole response to a READ.
std::uint64_t RequestProcessor::missing_translations(SimQp& qp, const Packet& packet) {
  if (const VerbFacts& verb = facts(packet.verb); verb.one_sided) {
    return memory_.missing_translations(packet.rkey, packet.remote_address + packet.offset,
                                        verb.wants_response ? packet.length : packet.payload);
  }
  const ResponderState& state = qp.responder;
  RecvQueue& queue = qp.recv_queue();
  const RecvWqe& recv = state.has_recv ? state.recv : queue.at(queue.used);
  const ibv_sge* sges = state.has_recv ? state.recv_sges : queue.sges_of(queue.used);
  const std::uint64_t begin = (packet.first ? 0 : state.offset) + grh_room(qp);
  std::uint64_t missing = 0;
  if (begin + packet.payload > recv.length) return 0;  // too long: nothing will be written
  walk_sges({sges, recv.sges}, begin, packet.payload,
            [this, &missing](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
              missing += memory_.missing_translations(lkey, address, bytes);
              return true;
            });
  return missing;
}

// What a payload takes for its cache lines after the first.
Picos RequestProcessor::further_lines(std::uint64_t payload) const {
  return profile_.receive_line * static_cast<std::int64_t>(payload == 0 ? 0 : (payload - 1) / kCacheLine.value);
}

Picos RequestProcessor::service_time(const SimQp& qp, const Packet& packet, Verdict verdict) const {
  if (verdict != Verdict::take && verdict != Verdict::repeat) return profile_.receive_packet;
  if (facts(packet.verb).atomic) return profile_.receive_packet + profile_.receive_dma * 2 + profile_.atomic_packet;
  const bool reads = packet.verb == Verb::read && packet.length > 0;
  const InlineReceive place = packet.payload > 0 ? inline_receive(qp, packet) : InlineReceive::in_cqe;
  const bool writes = place == InlineReceive::nowhere;
  const bool completes = packet.last && (packet.verb == Verb::send || packet.has_immediate);
  Picos time = profile_.receive_packet + profile_.receive_dma * ((reads || writes ? 1 : 0) + (completes ? 1 : 0));
  if (place == InlineReceive::in_recv) time += profile_.receive_inline;
  if (writes) time += further_lines(packet.payload);
  // Each packet of the response is made in a time of its own.
  return reads ? time + profile_.read_request + further_lines(std::min(packet.length, qp.path_mtu)) : time;
}

// The unit works on the packet in front for `time`, from when it is free.
void RequestProcessor::work(SimQp& qp, Picos time) {
  engine_.schedule(units_.occupy(qp, time), &time_is_over, this, as_argument(qp));
}

void RequestProcessor::time_is_over(void* object, std::uint64_t argument) {
  RequestProcessor& self = *static_cast<RequestProcessor*>(object);
  SimQp& qp = as_qp(argument);
  ReceivingUnit& unit = self.units_.of(qp);
  const bool wanted = receiving(qp) && unit.generation == qp.generation;
  if (!wanted || self.execute(unit, qp, unit.front())) self.units_.front_is_done(unit);
}

// False: the packet stays in front, for more responses, for a RECV or for a slot.
bool RequestProcessor::execute(ReceivingUnit& unit, SimQp& qp, Packet& packet) {
  if (unit.responses > 0) return respond(unit, qp, packet);
  const Verdict verdict = judge(qp, packet, memory_);
  unit.repeats = verdict == Verdict::repeat;
  switch (verdict) {
    case Verdict::wait_for_recv:  // another QP took the shared queue's last RECV meanwhile
      unit.waits_for_recv = true;
      unit.waiting_since = engine_.now();
      return false;
    case Verdict::take:
      if (!executor_.take(qp, packet)) return false;
      return packet.verb != Verb::read || respond(unit, qp, packet);
    case Verdict::repeat:
      return respond(unit, qp, packet);
    case Verdict::drop:
    case Verdict::duplicate:
    case Verdict::gap:
    case Verdict::invalid:
    case Verdict::no_access:
    case Verdict::no_recv:
      break;
  }
  executor_.refuse(qp, packet, verdict);
  return true;
}

// Makes the next packet of the response to the READ in front. False when more are to come: the unit works on.
bool RequestProcessor::respond(ReceivingUnit& unit, SimQp& qp, Packet& packet) {
  if (answers_.respond(qp, packet, unit.responses, unit.repeats)) {
    unit.responses = 0;
    return true;
  }
  ++unit.responses;
  work(qp, profile_.next_packet);
  return false;
}

}  // namespace verbscope::sim
