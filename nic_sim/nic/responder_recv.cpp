// The responder's work with RECVs: fetching them, from a QP's own queue or a shared one, filling them, completing them.
#include <endian.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "nic_sim/device/addresses.hpp"
#include "nic_sim/nic/nic.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {
namespace {

// InfiniBand Architecture Specification 1.3, volume 1, section 8.3: version, payload length, next header (0x1B: BTH
// follows), hop limit, and the two addresses.
std::array<std::byte, 40> grh_of(const Packet& packet) {
  ibv_grh grh{};
  grh.version_tclass_flow = htobe32(6u << 28);
  grh.paylen = htobe16(static_cast<std::uint16_t>(packet.wire_bytes - (kLrh + kGrh + kVcrc).value));
  grh.next_hdr = 0x1b;
  grh.hop_limit = 64;
  const auto port = static_cast<std::uint8_t>(packet.port + 1);
  grh.sgid = gid_of(packet.source_node, port);
  grh.dgid = gid_of(packet.target_node, port);
  return std::bit_cast<std::array<std::byte, 40>>(grh);
}

}  // namespace

// Scatter-to-CQE: the payload comes in the place of a payload write.
bool Responder::inline_receive(const SimQp& qp, const Packet& packet) const {
  return packet.verb == Verb::send && packet.first && packet.last && packet.payload <= qp.inline_recv;
}

void Responder::prefetch(SimQp& qp) {
  if (qp.srq != nullptr) return prefetch(*qp.shared_queue());
  prefetch(qp.recv, &recvs_fetched, &qp, qp.generation);
}

void Responder::prefetch(SimSrq& srq) {
  prefetch(srq.queue, &shared_recvs_fetched, &srq, 0);
}

// Aligned groups, so that a group is one DMA read; two groups ahead of use; less than a group only when there is
// nothing else at hand.
void Responder::prefetch(RecvQueue& queue, Engine::Action fetched, void* owner, std::uint16_t generation) {
  const std::uint64_t group =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(nic_.profile().wire.recv_prefetch), queue.ring.size());
  while (queue.fetching < queue.posted && queue.fetching - queue.used < 2 * group) {
    const std::uint64_t rest = group - queue.fetching % group;
    const std::uint64_t count = std::min(rest, queue.posted - queue.fetching);
    if (count < rest && queue.fetching > queue.used) return;
    const std::uint64_t begin = queue.ring.place(queue.fetching) * queue.slot_bytes;
    queue.fetching += count;
    nic_.bus().dma_read(begin, count * queue.slot_bytes, fetched, owner, with_generation(generation, count));
  }
}

void Responder::recvs_fetched(void* object, std::uint64_t argument) {
  SimQp& qp = as_qp(object);
  if (qp.state == IBV_QPS_ERR || qp.state == IBV_QPS_RESET || !of_this_generation(qp, argument)) return;
  qp.recv.fetched += without_generation(argument);
  Responder& self = qp.nic->responder();
  Unit& unit = self.unit_of(qp);
  if (unit.waits_for_recv && self.in_front(unit, qp)) self.resume(unit);
}

void Responder::shared_recvs_fetched(void* object, std::uint64_t argument) {
  SimSrq& srq = *static_cast<SimSrq*>(object);
  srq.queue.fetched += without_generation(argument);
  Responder& self = srq.nic->responder();
  for (Unit& unit : self.units_) {
    if (!unit.waits_for_recv) continue;
    const SimQp* qp = self.nic_.qps().find(unit.line.front().target_qp);
    if (qp != nullptr && qp->srq == &srq) self.resume(unit);
  }
}

// The next RECV is the present message's from now on. One of a shared queue is copied: its place is free again.
void Responder::take_recv(SimQp& qp) {
  RecvQueue& queue = qp.recv_queue();
  ResponderState& state = qp.responder;
  state.has_recv = true;
  state.recv = queue.at(queue.used);
  state.recv_index = queue.used;
  state.recv_sges = queue.sges_of(queue.used);
  if (qp.srq != nullptr) {
    qp.srq_sges.assign(state.recv_sges, state.recv_sges + state.recv.sges);
    state.recv_sges = qp.srq_sges.data();
  }
  ++queue.used;
}

// Puts the payload, and in front of it the GRH that a datagram has, into the RECV in use.
ibv_wc_status Responder::deliver(SimQp& qp, const Packet& packet) {
  const std::uint64_t begin = qp.responder.offset + grh_room(qp);
  if (begin + packet.payload > qp.responder.recv.length) return IBV_WC_LOC_LEN_ERR;
  const bool by_cqe = inline_receive(qp, packet);
  if (by_cqe && packet.payload > 0) ++nic_.counts().inline_receives;
  if (qp.transport == Transport::ud && packet.has_grh) {
    const auto grh = grh_of(packet);
    if (const ibv_wc_status status = scatter(qp, 0, grh, false); status != IBV_WC_SUCCESS) return status;
  }
  return scatter(qp, begin, {packet.data, packet.payload}, by_cqe);
}

// Writes `data` to the RECV in use, from its byte `begin` on.
ibv_wc_status Responder::scatter(SimQp& qp, std::uint64_t begin, std::span<const std::byte> data, bool by_cqe) {
  const ibv_sge* sges = qp.responder.recv_sges;
  std::size_t copied = 0;
  for (std::uint32_t i = 0; copied < data.size(); ++i) {
    const ibv_sge& sge = sges[i];
    if (begin >= sge.length) {
      begin -= sge.length;
      continue;
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(data.size() - copied, sge.length - begin);
    const std::uint64_t address = sge.addr + begin;
    if (!nic_.regions().grants(*qp.pd, sge.lkey, address, bytes, IBV_ACCESS_LOCAL_WRITE)) return IBV_WC_LOC_PROT_ERR;
    if (by_cqe || nic_.payload_writer().under_way() == 0) {
      std::memcpy(reinterpret_cast<std::byte*>(address), &data[copied], bytes);
      if (!by_cqe) nic_.bus().dma_write(address, bytes);
    } else {  // not before the WRITEs that came before it
      Packet& write = nic_.packets().take(static_cast<std::uint32_t>(bytes));
      std::memcpy(write.data, &data[copied], bytes);
      write.rkey = sge.lkey;
      nic_.payload_writer().write(address, write);
    }
    copied += bytes;
    begin = 0;
  }
  return IBV_WC_SUCCESS;
}

void Responder::complete_recv(SimQp& qp, const Packet& packet, ibv_wc_status status) {
  ResponderState& state = qp.responder;
  unsigned flags = packet.has_immediate ? IBV_WC_WITH_IMM : 0;
  if (qp.transport == Transport::ud && packet.has_grh) flags |= IBV_WC_GRH;
  const bool by_write = packet.verb == Verb::write;
  state.has_recv = false;
  nic_.cqe_writer().complete(qp.recv_completions(),
                             Completion{.visible = {},
                                        .wr_id = state.recv.wr_id,
                                        .qp = &qp,
                                        .index = state.recv_index,
                                        .status = status,
                                        .opcode = by_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                                        .bytes = state.offset + grh_room(qp),
                                        .immediate = packet.immediate,
                                        .source_qp = packet.source_qp,
                                        .source_lid = lid_of(packet.source_node),
                                        .flags = flags,
                                        .of_send = false,
                                        .solicited = packet.solicited});
  prefetch(qp);
}

void Responder::flush_recv(SimQp& qp, std::uint64_t wr_id, std::uint64_t index) {
  nic_.cqe_writer().complete(qp.recv_completions(), Completion{.visible = {},
                                                               .wr_id = wr_id,
                                                               .qp = &qp,
                                                               .index = index,
                                                               .status = IBV_WC_WR_FLUSH_ERR,
                                                               .opcode = IBV_WC_RECV,
                                                               .bytes = 0,
                                                               .immediate = 0,
                                                               .source_qp = 0,
                                                               .source_lid = 0,
                                                               .flags = 0,
                                                               .of_send = false});
}

void Responder::flush(SimQp& qp) {
  RecvQueue& queue = qp.recv;
  ResponderState& state = qp.responder;
  if (state.has_recv) flush_recv(qp, state.recv.wr_id, state.recv_index);
  state.has_recv = false;
  for (; queue.used < queue.posted; ++queue.used) flush_recv(qp, queue.at(queue.used).wr_id, queue.used);
  queue.fetched = queue.fetching = queue.posted;
  forget(qp);
}

}  // namespace verbscope::sim
