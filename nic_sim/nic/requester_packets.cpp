// The requester's work on packets: building them from WQEs, reading their payload, sending them in order.
#include <algorithm>
#include <cstring>

#include "nic_sim/link/sequence.hpp"
#include "nic_sim/nic/nic.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {
namespace {

ibv_wc_opcode completion_opcode(Verb verb) {
  switch (verb) {
    case Verb::write:
      return IBV_WC_RDMA_WRITE;
    case Verb::read:
      return IBV_WC_RDMA_READ;
    case Verb::fetch_add:
      return IBV_WC_FETCH_ADD;
    case Verb::compare_swap:
      return IBV_WC_COMP_SWAP;
    default:
      return IBV_WC_SEND;
  }
}

}  // namespace

Packet& Requester::make_packet(SimQp& qp, SendWqe& wqe) {
  const bool datagram = qp.transport == Transport::ud;
  const std::uint32_t offset = qp.requester.packet_of_next * qp.path_mtu;
  const bool carries = wqe.verb == Verb::send || wqe.verb == Verb::write;
  const std::uint32_t payload = carries ? std::min(wqe.length - offset, qp.path_mtu) : 0;
  Packet& packet = nic_.packets().take(payload);
  packet.kind = Packet::Kind::request;
  packet.verb = wqe.verb;
  packet.transport = qp.transport;
  packet.first = qp.requester.packet_of_next == 0;
  packet.last = qp.requester.packet_of_next + 1 == wqe.packets;
  packet.has_immediate = wqe.has_immediate && packet.last;
  packet.has_grh = wqe.has_grh;
  packet.solicited = wqe.solicited && packet.last;
  packet.completes = packet.last && wqe.signaled && qp.transport != Transport::rc;
  packet.port = qp.port;
  packet.source_node = nic_.node();
  packet.target_node = wqe.target_node;
  packet.source_qp = qp.qp_num;
  packet.target_qp = wqe.target_qp;
  packet.sequence = wqe.sequence + qp.requester.packet_of_next;
  packet.immediate = wqe.immediate;
  packet.qkey = wqe.qkey;
  packet.reads_left = 0;
  packet.offset = offset;
  packet.wqe = wqe.index;
  packet.generation = qp.generation;
  packet.remote_address = wqe.remote_address;
  packet.rkey = wqe.rkey;
  packet.length = wqe.length;
  packet.operand = wqe.operand;
  packet.compare = wqe.compare;
  Bytes bytes = kLrh + kBth + kIcrc + kVcrc + Bytes(round_up(payload, kPayloadPad.value));
  if (packet.has_grh) bytes += kGrh;
  if (datagram) bytes += kDeth;
  if (packet.has_immediate) bytes += kImmDt;
  if (wqe.verb == Verb::read || (wqe.verb == Verb::write && packet.first)) bytes += kReth;
  if (wqe.verb == Verb::fetch_add || wqe.verb == Verb::compare_swap) bytes += kAtomicEth;
  packet.wire_bytes = static_cast<std::uint32_t>(bytes.value);

  NicCounts& counts = nic_.counts();
  ++counts.packets_sent;
  if (sequence_before(packet.sequence, qp.requester.sequence_unsent)) {
    ++counts.packets_resent;
  } else {
    qp.requester.sequence_unsent = packet.sequence + (carries ? 1 : wqe.sequences);
    if (packet.last) ++counts.messages_sent;
  }
  return packet;
}

// Inline payload is in the WQE; other payload is read by DMA while the unit goes on. Packets leave in order.
void Requester::send_payload(SimQp& qp, SendWqe& wqe, Packet& packet) {
  SendQueue& queue = qp.send;
  if (wqe.inlined) {
    if (packet.payload > 0) {
      std::memcpy(packet.data, queue.inline_data_of(wqe.index) + packet.offset, packet.payload);
    }
  } else if (packet.payload > 0) {
    std::uint64_t begin = packet.offset;
    std::uint64_t left = packet.payload;
    for (std::uint32_t i = 0; i < wqe.sges && left > 0; ++i) {
      const ibv_sge& sge = queue.sges_of(wqe.index)[i];
      if (begin >= sge.length) {
        begin -= sge.length;
        continue;
      }
      const std::uint64_t bytes = std::min<std::uint64_t>(left, sge.length - begin);
      if (nic_.find_mr(*qp.pd, sge.lkey, sge.addr + begin, bytes, 0) == nullptr) {
        pending_reads_.clear();
        nic_.packets().give_back(packet);
        return fail_at(qp, wqe, IBV_WC_LOC_PROT_ERR);
      }
      pending_reads_.push_back({sge.addr + begin, bytes});
      left -= bytes;
      begin = 0;
    }
    packet.reads_left = static_cast<std::uint32_t>(pending_reads_.size());
    for (const Piece& piece : pending_reads_) {
      nic_.bus().dma_read(piece.address, piece.bytes, &payload_read, &qp, as_argument(packet));
    }
    pending_reads_.clear();
  }
  qp.requester.unsent.push(packet);
  send_ready_packets(qp);
}

void Requester::payload_read(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  Packet& packet = as_packet(argument);
  if (--packet.reads_left > 0) return;
  SendQueue& queue = qp.send;
  // A repeated packet whose first copy was acknowledged meanwhile: the work request is done and its place may have
  // another one. The receiver drops the copy whatever is in it.
  const bool stale = qp.state != IBV_QPS_RTS || packet.generation != qp.generation || packet.wqe < queue.done;
  std::uint64_t begin = packet.offset;
  std::uint32_t copied = 0;
  for (const ibv_sge* next = queue.sges_of(packet.wqe); !stale && copied < packet.payload; ++next) {
    const ibv_sge& sge = *next;
    if (begin >= sge.length) {
      begin -= sge.length;
      continue;
    }
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(packet.payload - copied, sge.length - begin));
    if (qp.nic->region(sge.lkey, sge.addr + begin, bytes) == nullptr) {  // went away meanwhile
      qp.nic->requester().fail_at(qp, queue.at(packet.wqe), IBV_WC_LOC_PROT_ERR);
      break;
    }
    std::memcpy(packet.data + copied, reinterpret_cast<const std::byte*>(sge.addr + begin), bytes);
    copied += bytes;
    begin = 0;
  }
  qp.nic->requester().send_ready_packets(qp);
}

void Requester::send_ready_packets(SimQp& qp) {
  PacketQueue& unsent = qp.requester.unsent;
  while (!unsent.empty() && unsent.front().reads_left == 0) {
    Packet& packet = unsent.pop();
    if (qp.state == IBV_QPS_RTS && packet.generation == qp.generation) {
      nic_.fabric().send(packet);
    } else {
      nic_.packets().give_back(packet);
    }
  }
}

// The last packet of the WQE is made: on unreliable transports that is its last use.
void Requester::wqe_sent(SimQp& qp, SendWqe& wqe) {
  SendQueue& queue = qp.send;
  ++queue.next;
  qp.requester.packet_of_next = 0;
  if (qp.transport == Transport::rc) {
    wqe.staged = false;
    if (queue.done + 1 == queue.next) qp.requester.progress_at = nic_.engine().now();
    start_timer(qp);
  } else {
    release(wqe);
  }
}

// The WQE had its last use, wherever it is.
void Requester::release(SendWqe& wqe) {
  nic_.wqe_cache().drop(wqe);
  wqe.staged = false;
}

void Requester::left_port(const Packet& packet, Picos when) {
  SimQp* qp = nic_.find_qp(packet.source_qp);
  if (qp != nullptr)
    nic_.engine().schedule(when, &completed_by_port, qp, with_generation(packet.generation, packet.wqe));
}

void Requester::completed_by_port(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (qp.state != IBV_QPS_RTS || !of_this_generation(qp, argument)) return;
  const std::uint64_t index = without_generation(argument);
  qp.send.done = index + 1;
  qp.nic->requester().complete_wqe(qp, qp.send.at(index), IBV_WC_SUCCESS);
}

void Requester::complete_wqe(SimQp& qp, const SendWqe& wqe, ibv_wc_status status) {
  nic_.complete(qp.send_completions(), Completion{.visible = {},
                                                  .wr_id = wqe.wr_id,
                                                  .qp = &qp,
                                                  .index = wqe.index,
                                                  .status = status,
                                                  .opcode = completion_opcode(wqe.verb),
                                                  .bytes = wqe.length,
                                                  .immediate = 0,
                                                  .source_qp = 0,
                                                  .source_lid = 0,
                                                  .flags = 0,
                                                  .of_send = true});
}

}  // namespace verbscope::sim
