#include "nic_sim/nic/packet_builder.hpp"

#include <algorithm>
#include <cstring>

#include "nic_sim/link/sequence.hpp"
#include "verbs/sge_walk.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {
namespace {

// Whether the request brings the bytes of its message; else the response does.
bool carries_payload(const SendWqe& wqe) {
  return facts(wqe.verb).carries_payload;
}

// The headers of a request behind its BTH.
Bytes extensions(const Packet& packet) {
  Bytes bytes = facts(packet.transport).packet_header;
  if (packet.has_immediate) bytes += kImmDt;
  if (packet.first) bytes += facts(packet.verb).request_header;
  return bytes;
}

}  // namespace

void PacketBuilder::send_next(SimQp& qp, const SendWqe& wqe) {
  Packet& packet = make(qp, wqe);
  count(qp, wqe, packet);
  if (wqe.inlined) {
    if (packet.payload > 0) {
      std::memcpy(packet.data, qp.send.inline_data_of(wqe.index) + packet.offset, packet.payload);
    }
  } else if (packet.payload > 0 && !read_payload(qp, wqe, packet)) {
    packets_.give_back(packet);
    return completer_.fail_at(qp, wqe, IBV_WC_LOC_PROT_ERR);
  }
  qp.requester.unsent.push(packet);
  send_ready(qp);
}

Packet& PacketBuilder::make(const SimQp& qp, const SendWqe& wqe) {
  const std::uint32_t number = qp.requester.packet_of_next;
  const std::uint32_t offset = number * qp.path_mtu;
  Packet& packet = packets_.take(carries_payload(wqe) ? std::min(wqe.length - offset, qp.path_mtu) : 0);
  packet.kind = Packet::Kind::request;
  packet.verb = wqe.verb;
  packet.transport = qp.transport;
  packet.first = number == 0;
  packet.last = number + 1 == wqe.packets;
  packet.has_immediate = wqe.has_immediate && packet.last;
  packet.has_grh = wqe.has_grh;
  packet.solicited = wqe.solicited && packet.last;
  packet.completes = packet.last && wqe.signaled && !facts(qp.transport).reliable;
  packet.port = qp.port;
  packet.source_node = node_;
  packet.target_node = wqe.target_node;
  packet.source_qp = qp.qp_num;
  packet.target_qp = wqe.target_qp;
  packet.sequence = wqe.sequence + number;
  packet.immediate = wqe.immediate;
  packet.qkey = wqe.qkey;
  packet.reads_left = 0;
  packet.offset = offset;
  packet.cookie = with_generation(qp.generation, wqe.index);
  packet.remote_address = wqe.remote_address;
  packet.rkey = wqe.rkey;
  packet.length = wqe.length;
  packet.operand = wqe.operand;
  packet.compare = wqe.compare;
  packet.wire_bytes = framing_.bytes(packet.payload, extensions(packet), packet.has_grh);
  packet.priority = wqe.priority;
  return packet;
}

void PacketBuilder::count(SimQp& qp, const SendWqe& wqe, Packet& packet) {
  ++counts_.packets_sent;
  packet.counted = false;
  if (sequence_before(packet.sequence, qp.requester.sequence_unsent)) {
    ++counts_.packets_resent;
  } else {
    qp.requester.sequence_unsent = packet.sequence + (carries_payload(wqe) ? 1 : wqe.sequences);
    packet.counted = packet.last;
  }
}

// Payload that is not inline is read by DMA while the unit goes on. False: the program may not send it.
bool PacketBuilder::read_payload(SimQp& qp, const SendWqe& wqe, Packet& packet) {
  const bool granted = walk_sges({qp.send.sges_of(wqe.index), wqe.sges}, packet.offset, packet.payload,
                                 [this, &qp](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                                   pieces_.push_back({address, bytes});
                                   return memory_.grants(*qp.pd, lkey, address, bytes, 0);
                                 });
  packet.reads_left = static_cast<std::uint32_t>(pieces_.size());
  if (granted) {
    for (const Piece& piece : pieces_) {
      bus_.dma_read(piece.address, piece.bytes, &payload_read, this, as_argument(packet));
    }
  }
  pieces_.clear();
  return granted;
}

void PacketBuilder::payload_read(void* object, std::uint64_t argument) {
  PacketBuilder& self = *static_cast<PacketBuilder*>(object);
  Packet& packet = as_packet(argument);
  if (--packet.reads_left > 0) return;
  SimQp& qp = self.qps_.once_there(packet.source_qp);
  // A repeated packet whose first copy was acknowledged meanwhile: the work request is done and its place may have
  // another one. The receiver drops the copy whatever is in it.
  const std::uint64_t wqe = without_generation(packet.cookie);
  const bool stale = qp.state != IBV_QPS_RTS || !of_this_generation(qp, packet.cookie) || wqe < qp.send.done;
  if (!stale && !self.gather(qp, packet)) {
    self.completer_.fail_at(qp, qp.send.at(wqe), IBV_WC_LOC_PROT_ERR);
  }
  self.send_ready(qp);
}

// Copies the payload into the packet. False: a region of it was deregistered while it was read.
bool PacketBuilder::gather(SimQp& qp, Packet& packet) const {
  std::byte* out = packet.data;
  return walk_sges({qp.send.sges_of(without_generation(packet.cookie)), qp.send.max_sge}, packet.offset, packet.payload,
                   [this, &out](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                     if (memory_.find(lkey, address, bytes) == nullptr) return false;
                     memory_.read(address, out, bytes);
                     out += bytes;
                     return true;
                   });
}

// Packets leave in order, each when its payload is there and the rate of the QP allows it.
void PacketBuilder::send_ready(SimQp& qp) {
  PacketQueue& unsent = qp.requester.unsent;
  while (!unsent.empty() && unsent.front().reads_left == 0 && !qp.requester.waits_for_rate) {
    Packet& packet = unsent.front();
    const bool wanted = qp.state == IBV_QPS_RTS && of_this_generation(qp, packet.cookie);
    if (wanted && !congestion_.may_send(qp, packet, &rate_allows, this)) {
      qp.requester.waits_for_rate = true;
      return;
    }
    unsent.pop();
    if (wanted) {
      fabric_.send(packet);
    } else {
      packets_.give_back(packet);
    }
  }
}

void PacketBuilder::rate_allows(void* object, std::uint64_t argument) {
  PacketBuilder& self = *static_cast<PacketBuilder*>(object);
  SimQp& qp = as_qp(argument);
  qp.requester.waits_for_rate = false;
  self.send_ready(qp);
  self.scheduler_.activate(qp);
}

}  // namespace verbscope::sim
