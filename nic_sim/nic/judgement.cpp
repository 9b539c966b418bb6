#include "nic_sim/nic/judgement.hpp"

#include <algorithm>

#include "nic_sim/link/sequence.hpp"

namespace verbscope::sim {
namespace {

Verdict judge_order(const SimQp& qp, const Packet& packet) {
  const ResponderState& state = qp.responder;
  const TransportFacts& transport = facts(qp.transport);
  if (transport.reliable) {
    if (sequence_before(packet.sequence, state.expected)) {
      return packet.verb == Verb::read ? Verdict::repeat : Verdict::duplicate;
    }
    if (packet.sequence != state.expected) return Verdict::gap;
  } else if (!transport.one_packet && !packet.first && (state.dropping || packet.sequence != state.expected)) {
    return Verdict::drop;
  }
  return Verdict::take;
}

// InfiniBand Architecture Specification 1.3, volume 1, section 9.7.4.1 (responder's checks): a message of no bytes
// names no region.
Verdict judge_access(const SimQp& qp, const Packet& packet, const HostMemory& memory) {
  int access = IBV_ACCESS_REMOTE_WRITE;
  const VerbFacts& verb = facts(packet.verb);
  if (verb.wants_response) {
    const std::uint32_t most = std::max<std::uint32_t>(qp.settings.max_dest_rd_atomic, 1);
    access = verb.atomic ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_READ;
    if (qp.responder.reads >= most) return Verdict::invalid;
  }
  if ((qp.settings.qp_access_flags & static_cast<unsigned>(access)) == 0) return Verdict::invalid;
  if (verb.atomic && packet.remote_address % kAtomicBytes != 0) return Verdict::invalid;
  if (packet.length == 0) return Verdict::take;
  const bool granted = memory.grants(*qp.pd, packet.rkey, packet.remote_address, packet.length, access);
  return granted ? Verdict::take : Verdict::no_access;
}

}  // namespace

bool takes_recv(const SimQp& qp, const Packet& packet) {
  return !qp.responder.has_recv && (packet.verb == Verb::send ? packet.first : packet.has_immediate);
}

Verdict judge(const SimQp& qp, const Packet& packet, const HostMemory& memory) {
  if (!receiving(qp)) return Verdict::drop;
  if (const Verdict order = judge_order(qp, packet); order != Verdict::take) return order;
  if (facts(packet.verb).one_sided && packet.first) {
    const Verdict access = judge_access(qp, packet, memory);
    if (access != Verdict::take) return facts(qp.transport).reliable ? access : Verdict::drop;
  }
  if (packet.verb == Verb::write && !packet.first &&
      memory.find(packet.rkey, packet.remote_address + packet.offset, packet.payload) == nullptr) {
    return facts(qp.transport).reliable ? Verdict::no_access : Verdict::drop;  // it went away meanwhile
  }
  const RecvQueue& queue = qp.recv_queue();
  if (!takes_recv(qp, packet) || queue.used < queue.fetched) return Verdict::take;
  return queue.used < queue.posted ? Verdict::wait_for_recv : Verdict::no_recv;
}

}  // namespace verbscope::sim
