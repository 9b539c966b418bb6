#include "nic_sim/nic/request_executor.hpp"

namespace verbscope::sim {

bool RequestExecutor::take(SimQp& qp, Packet& packet) {
  ResponderState& state = qp.responder;
  const std::uint64_t spans =
      packet.verb == Verb::read && packet.length > 0 ? divide_up(packet.length, qp.path_mtu) : 1;
  state.expected = packet.sequence + static_cast<std::uint32_t>(spans);
  state.nak_sent = false;
  state.dropping = false;
  if (facts(packet.verb).wants_response) {
    ++state.reads;
    state.unacknowledged = 0;  // the response acknowledges what came before
    return packet.verb == Verb::read || atomics_.begin(qp, packet);
  }
  take_payload(qp, packet);
  return true;
}

void RequestExecutor::take_payload(SimQp& qp, Packet& packet) {
  ResponderState& state = qp.responder;
  if (packet.first) state.offset = 0;
  if (takes_recv(qp, packet)) recvs_.take(qp, packet);
  ibv_wc_status status = IBV_WC_SUCCESS;
  if (packet.verb == Verb::send) {
    status = recvs_.deliver(qp, packet);
  } else if (packet.payload > 0) {
    payload_.write(packet.remote_address + packet.offset, packet);
  }
  state.offset += packet.payload;
  if (status != IBV_WC_SUCCESS) {
    fail_message(qp, packet, status);
  } else if (packet.last) {
    finish_message(qp, packet);
  }
}

void RequestExecutor::fail_message(SimQp& qp, const Packet& packet, ibv_wc_status status) {
  recvs_.complete(qp, packet, status);
  const bool too_long = status == IBV_WC_LOC_LEN_ERR;
  if (facts(qp.transport).reliable) {
    answers_.acknowledge(qp, too_long ? Packet::Kind::nak_invalid : Packet::Kind::nak_operation, packet.sequence);
  }
  whole_.fail_qp(qp);
}

void RequestExecutor::finish_message(SimQp& qp, const Packet& packet) {
  if (packet.verb == Verb::write) ++counts_.writes_received;
  if (packet.verb == Verb::send || packet.has_immediate) {
    recvs_.complete(qp, packet, IBV_WC_SUCCESS);
    ++counts_.messages_received;
  }
  if (!facts(qp.transport).reliable) return;
  ++qp.responder.unacknowledged;
  if (qp.arrivals.requests == 1 ||  // this one
      qp.responder.unacknowledged >= static_cast<std::uint32_t>(profile_.ack_coalescing)) {
    answers_.acknowledge(qp, Packet::Kind::ack, packet.sequence);
  }
}

void RequestExecutor::refuse(SimQp& qp, const Packet& packet, Verdict verdict) {
  ResponderState& state = qp.responder;
  if (verdict == Verdict::duplicate) {
    if (facts(packet.verb).atomic) return atomics_.repeat(qp, packet);
    if (packet.last) answers_.acknowledge(qp, Packet::Kind::ack, state.expected - 1);
  } else if (verdict == Verdict::gap) {
    if (!state.nak_sent) answers_.acknowledge(qp, Packet::Kind::nak_sequence, state.expected);
    state.nak_sent = true;  // one NAK per gap
  } else if (verdict == Verdict::invalid || verdict == Verdict::no_access) {
    const bool invalid = verdict == Verdict::invalid;
    answers_.acknowledge(qp, invalid ? Packet::Kind::nak_invalid : Packet::Kind::nak_access, packet.sequence);
    whole_.fail_qp(qp);
  } else if (verdict == Verdict::no_recv && facts(qp.transport).reliable) {
    answers_.acknowledge(qp, Packet::Kind::nak_receiver_not_ready, state.expected);
    state.nak_sent = true;  // what follows this packet is out of sequence until the sender goes back
  } else {
    ++(verdict == Verdict::no_recv ? counts_.dropped_no_recv : counts_.dropped_refused);
    state.dropping = true;  // UC: up to the next first packet
  }
}

}  // namespace verbscope::sim
