#include "nic_sim/responder.hpp"

#include <algorithm>
#include <cstring>

#include "nic_sim/nic.hpp"
#include "nic_sim/sequence.hpp"
#include "pcie_model/wire/packet.hpp"

namespace verbscope::sim {
namespace {

std::uint32_t grh_room(const SimQp& qp) {
  return qp.transport == Transport::ud ? static_cast<std::uint32_t>(kUdGrhRoom.value) : 0;
}

}  // namespace

Responder::Responder(Nic& nic) : nic_(nic), units_(static_cast<std::size_t>(nic.profile().nic.responder_units)) {}

void Responder::bind(SimQp& qp) {
  qp.responder.unit = next_unit_;
  next_unit_ = (next_unit_ + 1) % static_cast<int>(units_.size());
}

void Responder::receive(Packet& packet) {
  SimQp* qp = nic_.find_qp(packet.target_qp);
  const bool connected = packet.transport != Transport::ud;
  if (qp == nullptr || (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS) || qp->transport != packet.transport ||
      qp->port != packet.port || (!connected && qp->qkey != packet.qkey) ||
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
    SimQp* qp = nic_.find_qp(packet.target_qp);
    if (qp == nullptr || (qp->state != IBV_QPS_RTR && qp->state != IBV_QPS_RTS)) {
      unit.line.pop();
      if (qp != nullptr) --qp->responder.waiting_packets;
      ++nic_.counts().dropped_refused;
      nic_.fabric().done_with(packet);
      continue;
    }
    unit.busy = true;
    if (nic_.qp_contexts().use(*qp)) {
      ++nic_.counts().qp_context_hits;
      begin_service(*qp, packet);
    } else {
      ++nic_.counts().qp_context_misses;
      nic_.bus().dma_read(0, nic_.profile().nic.qp_context.value, &context_read, qp, 0);
    }
  }
}

void Responder::context_read(void* object, std::uint64_t) {
  SimQp& qp = as_qp(object);
  Responder& self = qp.nic->responder();
  self.begin_service(qp, self.unit_of(qp).line.front());
}

void Responder::begin_service(SimQp& qp, Packet& packet) {
  const NicProfile& profile = nic_.profile().nic;
  const Verdict verdict = judge(qp, packet);
  if (verdict == Verdict::wait_for_recv) {
    unit_of(qp).waits_for_recv = true;
    ++nic_.counts().recv_waits;
    return;
  }
  Picos time = profile.receive_packet;
  if (verdict == Verdict::take) {
    const int dmas = (packet.payload > 0 ? 1 : 0) + (packet.last ? 1 : 0);
    time += profile.receive_dma * dmas;
  }
  nic_.counts().responder_busy_ps += static_cast<std::uint64_t>(time.count());
  nic_.engine().schedule(nic_.engine().now() + time, &service_done, &qp, as_argument(packet));
}

void Responder::service_done(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  Responder& self = qp.nic->responder();
  Packet& packet = as_packet(argument);
  Unit& unit = self.unit_of(qp);
  unit.line.pop();
  --qp.responder.waiting_packets;
  ++self.nic_.counts().packets_received;
  if (qp.state == IBV_QPS_RTR || qp.state == IBV_QPS_RTS) {
    const Verdict verdict = self.judge(qp, packet);
    if (verdict == Verdict::take) {
      self.take(qp, packet);
    } else {
      self.refuse(qp, packet, verdict);
    }
  }
  self.nic_.fabric().done_with(packet);
  const Picos free_at = self.nic_.bus().posted_credit_at();
  if (free_at > self.nic_.engine().now()) {
    self.nic_.engine().schedule(free_at, &unit_free, &qp);
  } else {
    unit.busy = false;
    self.serve_next(unit);
  }
}

void Responder::unit_free(void* object, std::uint64_t) {
  SimQp& qp = as_qp(object);
  Responder& self = qp.nic->responder();
  Unit& unit = self.unit_of(qp);
  unit.busy = false;
  self.serve_next(unit);
}

// What the transport and the receive queue say to a packet; changes nothing.
Responder::Verdict Responder::judge(SimQp& qp, const Packet& packet) {
  const ResponderState& state = qp.responder;
  if (qp.state != IBV_QPS_RTR && qp.state != IBV_QPS_RTS) return Verdict::drop;
  if (qp.transport == Transport::rc) {
    if (sequence_before(packet.sequence, state.expected)) return Verdict::duplicate;
    if (packet.sequence != state.expected) return Verdict::gap;
  }
  if (qp.transport == Transport::uc && !packet.first && (state.dropping || packet.sequence != state.expected)) {
    return Verdict::drop;
  }
  if (!packet.first || qp.recv.used < qp.recv.fetched) return Verdict::take;
  return qp.recv.used < qp.recv.posted ? Verdict::wait_for_recv : Verdict::no_recv;
}

void Responder::take(SimQp& qp, Packet& packet) {
  ResponderState& state = qp.responder;
  state.expected = packet.sequence + 1;
  state.nak_sent = false;
  state.dropping = false;
  if (packet.first) state.offset = 0;
  const ibv_wc_status status = deliver(qp, packet);
  state.offset += packet.payload;
  if (packet.last || status != IBV_WC_SUCCESS) finish_message(qp, packet, status);
}

// Scatters the payload into the RECV in use.
ibv_wc_status Responder::deliver(SimQp& qp, const Packet& packet) {
  const RecvWqe& wqe = qp.recv.at(qp.recv.used);
  const ibv_sge* sges = qp.recv.sges_of(qp.recv.used);
  std::uint64_t begin = qp.responder.offset + grh_room(qp);
  if (begin + packet.payload > wqe.length) return IBV_WC_LOC_LEN_ERR;
  std::uint32_t copied = 0;
  for (std::uint32_t i = 0; copied < packet.payload; ++i) {
    const ibv_sge& sge = sges[i];
    if (begin >= sge.length) {
      begin -= sge.length;
      continue;
    }
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(packet.payload - copied, sge.length - begin));
    const std::uint64_t address = sge.addr + begin;
    if (nic_.find_mr(sge.lkey, address, bytes, IBV_ACCESS_LOCAL_WRITE) == nullptr) return IBV_WC_LOC_PROT_ERR;
    std::memcpy(reinterpret_cast<std::byte*>(address), packet.data + copied, bytes);
    nic_.bus().dma_write(address, bytes);
    copied += bytes;
    begin = 0;
  }
  return IBV_WC_SUCCESS;
}

void Responder::finish_message(SimQp& qp, const Packet& packet, ibv_wc_status status) {
  RecvQueue& queue = qp.recv;
  unsigned flags = packet.has_immediate ? IBV_WC_WITH_IMM : 0;
  if (qp.transport == Transport::ud && packet.has_grh) flags |= IBV_WC_GRH;
  nic_.complete(qp.recv_completions(), Completion{.visible = {},
                                                  .wr_id = queue.at(queue.used).wr_id,
                                                  .qp = &qp,
                                                  .index = queue.used,
                                                  .status = status,
                                                  .opcode = IBV_WC_RECV,
                                                  .bytes = qp.responder.offset + grh_room(qp),
                                                  .immediate = packet.immediate,
                                                  .source_qp = packet.source_qp,
                                                  .flags = flags,
                                                  .of_send = false});
  ++queue.used;
  if (status != IBV_WC_SUCCESS) {
    const bool too_long = status == IBV_WC_LOC_LEN_ERR;
    if (qp.transport == Transport::rc) {
      acknowledge(qp, too_long ? Packet::Kind::nak_invalid : Packet::Kind::nak_operation, packet.sequence);
    }
    return nic_.fail_qp(qp);
  }
  ++nic_.counts().messages_received;
  if (qp.transport == Transport::rc) {
    ++qp.responder.unacknowledged;
    if (qp.responder.waiting_packets == 0 ||
        qp.responder.unacknowledged >= static_cast<std::uint32_t>(nic_.profile().nic.ack_coalescing)) {
      acknowledge(qp, Packet::Kind::ack, packet.sequence);
    }
  }
  prefetch(qp);
}

void Responder::refuse(SimQp& qp, const Packet& packet, Verdict verdict) {
  ResponderState& state = qp.responder;
  NicCounts& counts = nic_.counts();
  if (verdict == Verdict::duplicate) {
    if (packet.last) acknowledge(qp, Packet::Kind::ack, state.expected - 1);
  } else if (verdict == Verdict::gap) {
    if (!state.nak_sent) acknowledge(qp, Packet::Kind::nak_sequence, state.expected);
    state.nak_sent = true;
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

void Responder::acknowledge(SimQp& qp, Packet::Kind kind, std::uint32_t sequence) {
  Packet& packet = nic_.fabric().packets().take(0);
  packet.kind = kind;
  packet.transport = qp.transport;
  packet.completes = false;
  packet.port = qp.port;
  packet.source_node = nic_.node();
  packet.target_node = qp.peer_node;
  packet.source_qp = qp.qp_num;
  packet.target_qp = qp.peer_qp;
  packet.sequence = sequence;
  packet.immediate = qp.attributes.min_rnr_timer;
  Bytes bytes = kLrh + kBth + kAeth + kIcrc + kVcrc;
  if (qp.has_grh) bytes += kGrh;
  packet.wire_bytes = static_cast<std::uint32_t>(bytes.value);
  if (kind == Packet::Kind::ack) {
    qp.responder.unacknowledged = 0;
    ++nic_.counts().acks_sent;
  } else if (kind == Packet::Kind::nak_receiver_not_ready) {
    ++nic_.counts().rnr_naks_sent;
  } else {
    ++nic_.counts().naks_sent;
  }
  nic_.fabric().send(packet);
}

// Aligned groups, so that a group is one DMA read; two groups ahead of use; less than a group only when there is
// nothing else at hand.
void Responder::prefetch(SimQp& qp) {
  RecvQueue& queue = qp.recv;
  const auto group = static_cast<std::uint64_t>(nic_.profile().wire.recv_prefetch);
  while (queue.fetching < queue.posted && queue.fetching - queue.used < 2 * group) {
    const std::uint64_t rest = group - queue.fetching % group;
    const std::uint64_t count = std::min(rest, queue.posted - queue.fetching);
    if (count < rest && queue.fetching > queue.used) return;
    const std::uint64_t begin = (queue.fetching & (queue.ring.size() - 1)) * queue.slot_bytes;
    queue.fetching += count;
    nic_.bus().dma_read(begin, count * queue.slot_bytes, &recvs_fetched, &qp, in_life(qp.life, count));
  }
}

void Responder::recvs_fetched(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (qp.state == IBV_QPS_ERR || qp.state == IBV_QPS_RESET || !in_this_life(qp, argument)) return;
  qp.recv.fetched += without_life(argument);
  Responder& self = qp.nic->responder();
  Unit& unit = self.unit_of(qp);
  if (!unit.waits_for_recv || self.nic_.find_qp(unit.line.front().target_qp) != &qp) return;
  unit.waits_for_recv = false;
  self.begin_service(qp, unit.line.front());
}

void Responder::flush(SimQp& qp) {
  RecvQueue& queue = qp.recv;
  for (; queue.used < queue.posted; ++queue.used) {
    nic_.complete(qp.recv_completions(), Completion{.visible = {},
                                                    .wr_id = queue.at(queue.used).wr_id,
                                                    .qp = &qp,
                                                    .index = queue.used,
                                                    .status = IBV_WC_WR_FLUSH_ERR,
                                                    .opcode = IBV_WC_RECV,
                                                    .bytes = 0,
                                                    .immediate = 0,
                                                    .source_qp = 0,
                                                    .flags = 0,
                                                    .of_send = false});
  }
  queue.fetched = queue.fetching = queue.posted;
  forget(qp);
}

// A unit that waits for a RECV of this QP goes on: the packet in front finds the QP gone.
void Responder::forget(SimQp& qp) {
  Unit& unit = unit_of(qp);
  if (!unit.waits_for_recv || nic_.find_qp(unit.line.front().target_qp) != &qp) return;
  unit.waits_for_recv = false;
  nic_.engine().schedule(nic_.engine().now(), &unit_free, &qp);
}

}  // namespace verbscope::sim
