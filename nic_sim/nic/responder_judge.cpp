// What a responder says to a request before it does anything: its place in the order, its rights, the RECV that it
// needs.
#include <algorithm>

#include "nic_sim/link/sequence.hpp"
#include "nic_sim/nic/nic.hpp"

namespace verbscope::sim {

// Whether the packet begins to use a RECV. One whose message broke off (UC) serves the next.
bool Responder::takes_recv(const SimQp& qp, const Packet& packet) {
  return !qp.responder.has_recv && (packet.verb == Verb::send ? packet.first : packet.has_immediate);
}

// What the transport, the region and the receive queue say to a packet; changes nothing.
Responder::Verdict Responder::judge(SimQp& qp, const Packet& packet) {
  if (!receiving(qp)) return Verdict::drop;
  if (const Verdict order = judge_order(qp, packet); order != Verdict::take) return order;
  if (packet.verb != Verb::send && packet.first) {
    const Verdict access = judge_access(qp, packet);
    if (access != Verdict::take) return qp.transport == Transport::rc ? access : Verdict::drop;
  }
  if (packet.verb == Verb::write && !packet.first &&
      nic_.regions().find(packet.rkey, packet.remote_address + packet.offset, packet.payload) == nullptr) {
    return qp.transport == Transport::rc ? Verdict::no_access : Verdict::drop;  // it went away meanwhile
  }
  RecvQueue& queue = qp.recv_queue();
  if (!takes_recv(qp, packet) || queue.used < queue.fetched) return Verdict::take;
  return queue.used < queue.posted ? Verdict::wait_for_recv : Verdict::no_recv;
}

Responder::Verdict Responder::judge_order(SimQp& qp, const Packet& packet) {
  const ResponderState& state = qp.responder;
  if (qp.transport == Transport::rc) {
    if (sequence_before(packet.sequence, state.expected)) {
      return packet.verb == Verb::read ? Verdict::repeat : Verdict::duplicate;
    }
    if (packet.sequence != state.expected) return Verdict::gap;
  }
  if (qp.transport == Transport::uc && !packet.first && (state.dropping || packet.sequence != state.expected)) {
    return Verdict::drop;
  }
  return Verdict::take;
}

// InfiniBand Architecture Specification 1.3, volume 1, section 9.7.4.1 (responder's checks): a message of no bytes
// names no region.
Responder::Verdict Responder::judge_access(SimQp& qp, const Packet& packet) {
  int access = IBV_ACCESS_REMOTE_WRITE;
  if (packet.verb != Verb::write) {
    const std::uint32_t most = std::max<std::uint32_t>(qp.settings.max_dest_rd_atomic, 1);
    access = is_atomic(packet.verb) ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_READ;
    if (qp.responder.reads >= most) return Verdict::invalid;
  }
  if ((qp.settings.qp_access_flags & static_cast<unsigned>(access)) == 0) return Verdict::invalid;
  if (is_atomic(packet.verb) && packet.remote_address % kAtomicOperand.value != 0) return Verdict::invalid;
  if (packet.length == 0) return Verdict::take;
  const bool granted = nic_.regions().grants(*qp.pd, packet.rkey, packet.remote_address, packet.length, access);
  return granted ? Verdict::take : Verdict::no_access;
}

}  // namespace verbscope::sim
