#include "nic_sim/nic/recvs.hpp"

#include <endian.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "nic_sim/link/addresses.hpp"
#include "verbs/sge_walk.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {

namespace {

constexpr unsigned kAddressBits = 48;  // enough for user-space addresses

}  // namespace

void RecvFetcher::fetch(SimQp& qp) {
  if (qp.srq != nullptr) return fetch(*qp.shared_queue());
  fetch(qp.recv, events_.recvs_fetched, QpWord::make(qp), QpWord::kGenerationBits);
}

void RecvFetcher::fetch(SimSrq& srq) {
  fetch(srq.queue, events_.shared_recvs_fetched, reinterpret_cast<std::uint64_t>(&srq), kAddressBits);
}

// Reads aligned groups, one DMA read each, until two groups are ahead of use; a partial group only if no RECV is ahead.
// A descriptor of several RECVs is a group.
// The event's argument is `owner`, with the number of RECVs above bit `shift`.
void RecvFetcher::fetch(RecvQueue& queue, Engine::Action fetched, std::uint64_t owner, unsigned shift) {
  const std::uint64_t each = queue.per_descriptor;
  const std::uint64_t group = std::min<std::uint64_t>(each > 1 ? each : group_, queue.ring.size());
  while (queue.fetching < queue.posted && queue.fetching - queue.used < 2 * group) {
    const std::uint64_t rest = group - queue.fetching % group;
    const std::uint64_t count = std::min(rest, queue.posted - queue.fetching);
    if (count < rest && queue.fetching > queue.used) return;
    const std::uint64_t begin = queue.ring.place(queue.fetching) / each * queue.slot_bytes;
    queue.fetching += count;
    bus_.dma_read(begin, divide_up(count, each) * queue.slot_bytes, fetched, events_.responder, owner | count << shift);
  }
}

SimSrq& RecvFetcher::shared_recvs_fetched(std::uint64_t argument) {
  SimSrq& srq = *reinterpret_cast<SimSrq*>(argument & ((std::uint64_t{1} << kAddressBits) - 1));
  srq.queue.fetched += argument >> kAddressBits;
  return srq;
}

namespace {

ibv_gid gid_in(const Packet& packet, std::uint32_t node) {
  return gid_of(packet.global, node, static_cast<std::uint8_t>(packet.port + 1));
}

ibv_gid source_gid(const Packet& packet) {
  return gid_in(packet, packet.source_node);
}
ibv_gid destination_gid(const Packet& packet) {
  if (!is_multicast(packet)) return gid_in(packet, packet.target_node);
  ibv_gid gid{};
  gid.global.subnet_prefix = packet.operand;
  gid.global.interface_id = packet.compare;
  return gid;
}

// RoCE carries the priority as DSCP. A switch that marks the packet sets both ECN bits (RFC 3168).
unsigned traffic_class_of(const Packet& packet) {
  return unsigned{packet.priority} << 5 | (packet.marked ? 3u : kEcnCapable);
}

// InfiniBand Architecture Specification 1.3, volume 1, section 8.3: version, payload length, next header (0x1B: BTH
// follows), hop limit, and the two addresses. RoCE v2 over IPv6 has a header of the same layout (annex A17), which
// UDP follows.
std::array<std::byte, 40> grh_of(const Packet& packet, bool ethernet) {
  const bool udp = packet.global == GlobalHeader::ipv6;
  const std::uint64_t transport = (kBth + kDeth + kIcrc).value + (packet.has_immediate() ? kImmDt.value : 0) +
                                  round_up(packet.payload, kPayloadPad.value) + (udp ? kUdpHeader.value : 0);
  ibv_grh grh{};
  grh.version_tclass_flow = htobe32(6u << 28 | (ethernet ? traffic_class_of(packet) << 20 : 0));
  grh.paylen = htobe16(static_cast<std::uint16_t>(transport));
  grh.next_hdr = udp ? 17 : 0x1b;
  grh.hop_limit = 64;
  grh.sgid = source_gid(packet);
  grh.dgid = destination_gid(packet);
  return std::bit_cast<std::array<std::byte, 40>>(grh);
}

// On RoCE v2 an IPv4 header takes the end of that room (annex A17.9.2); its fields are those of RFC 791.
std::array<std::byte, 40> ipv4_of(const Packet& packet) {
  std::array<std::uint8_t, 40> room{};
  const auto put = [&room](std::size_t at, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) room[20 + at + i] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i));
  };
  const auto address = [](const ibv_gid& gid) { return big_endian(gid.global.interface_id); };
  put(0, 0x45, 1);
  put(1, traffic_class_of(packet), 1);
  put(2, kIpv4Header.value + kUdpHeader.value + kBth.value + kDeth.value + packet.payload + kIcrc.value, 2);
  put(8, 64, 1);
  put(9, 17, 1);  // UDP follows
  put(12, address(source_gid(packet)), 4);
  put(16, address(destination_gid(packet)), 4);
  return std::bit_cast<std::array<std::byte, 40>>(room);
}

}  // namespace

// The RECV of a shared queue is copied, so that its place is free again.
void RecvConsumer::take(SimQp& qp, const Packet& packet) {
  RecvQueue& queue = qp.recv_queue();
  ResponderState& state = qp.responder;
  state.has_recv = true;
  state.recv_index = queue.used++;
  state.recv = queue.at(state.recv_index);
  state.recv_sges = queue.sges_of(state.recv_index);
  if (qp.srq != nullptr) {
    qp.srq_sges.assign(state.recv_sges, state.recv_sges + state.recv.sges);
    state.recv_sges = qp.srq_sges.data();
    if (queue.posted - queue.used < qp.shared_queue()->limit) tell_limit(*qp.shared_queue());
  }
  if (!packet.last) fetcher_.fetch(qp);  // another message may need the next before this one is complete
}

// The limit ends with its event: section 10.2.9.
void RecvConsumer::tell_limit(SimSrq& srq) {
  srq.limit = 0;
  events_.raise(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

ibv_wc_status RecvConsumer::deliver(SimQp& qp, const Packet& packet) {
  const std::uint64_t begin = qp.responder.offset + grh_room(qp);
  if (begin + packet.payload > qp.responder.recv.length) return IBV_WC_LOC_LEN_ERR;
  const bool has_header = packet.global != GlobalHeader::none && grh_room(qp) > 0;
  if (packet.payload == 0) return has_header ? deliver_grh(qp, packet) : IBV_WC_SUCCESS;
  const InlineReceive place = inline_receive(qp, packet);
  const Picos ago = payload_issued(packet.last);
  if (place != InlineReceive::nowhere) {
    ++counts_.inline_receives;
    if (place == InlineReceive::in_recv) bus_.dma_write(0, packet.payload, Ordered::yes, ago);
  }
  if (has_header) {
    if (const ibv_wc_status status = deliver_grh(qp, packet); status != IBV_WC_SUCCESS) return status;
  }
  return scatter(qp, begin, {packet.data(), packet.payload}, place, ago);
}

ibv_wc_status RecvConsumer::deliver_grh(SimQp& qp, const Packet& packet) {
  const auto grh = packet.global == GlobalHeader::ipv4 ? ipv4_of(packet) : grh_of(packet, ethernet_);
  return scatter(qp, 0, grh, InlineReceive::nowhere, payload_issued(packet.last));
}

// Writes `data` to the buffers of the current RECV, from byte `begin` on, where it fits: by DMA, issued `ago`, or as
// the driver will copy it from `place`.
ibv_wc_status RecvConsumer::scatter(SimQp& qp, std::uint64_t begin, std::span<const std::byte> data,
                                    InlineReceive place, Picos ago) {
  if (qp.responder.recv.sges == 1 && place == InlineReceive::nowhere) {
    const ibv_sge& only = *qp.responder.recv_sges;
    const std::uint64_t address = only.addr + begin;
    const Region* region = memory_.granted(qp, only.lkey, address, data.size(), IBV_ACCESS_LOCAL_WRITE);
    if (region == nullptr) return IBV_WC_LOC_PROT_ERR;
    write(*region, address, data, ago);
    return IBV_WC_SUCCESS;
  }
  const bool granted =
      walk_sges({qp.responder.recv_sges, qp.responder.recv.sges}, begin, data.size(),
                [this, &qp, &data, place, ago](std::uint64_t address, std::uint64_t bytes, std::uint32_t lkey) {
                  const Region* region = memory_.granted(qp, lkey, address, bytes, IBV_ACCESS_LOCAL_WRITE);
                  if (region == nullptr) return false;
                  if (place != InlineReceive::nowhere) {
                    HostMemory::write(*region, address, data.data(), bytes);
                  } else {
                    write(*region, address, data.first(bytes), ago);
                  }
                  data = data.subspan(bytes);
                  return true;
                });
  return granted ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR;
}

void RecvConsumer::write(const Region& region, std::uint64_t address, std::span<const std::byte> data, Picos ago) {
  if (payload_.under_way() == 0) {
    HostMemory::write(region, address, data.data(), data.size());
    bus_.dma_write(address, data.size(), Ordered::yes, ago);
  } else {
    write_behind(address, data, region.key, ago);
  }
}

// The bytes must not appear before those of earlier WRITEs.
void RecvConsumer::write_behind(std::uint64_t address, std::span<const std::byte> data, std::uint32_t lkey, Picos ago) {
  Packet& write = packets_.take(static_cast<std::uint32_t>(data.size()));
  std::memcpy(write.data(), data.data(), data.size());
  write.rkey = lkey;
  payload_.write(address, write, ago);
}

void RecvConsumer::complete(SimQp& qp, const Packet& packet, ibv_wc_status status) {
  static constexpr std::array<unsigned, 3> kFlags{0, IBV_WC_WITH_IMM, IBV_WC_WITH_INV};  // by Packet::carried
  ResponderState& state = qp.responder;
  unsigned flags = kFlags[static_cast<std::size_t>(packet.carried)];
  if (packet.global != GlobalHeader::none && grh_room(qp) > 0) flags |= IBV_WC_GRH;
  const bool by_write = packet.verb == Verb::write;
  state.has_recv = false;
  cqes_.complete(qp.recv_completions(),
                 Completion{.visible = {},
                            .wr_id = state.recv.wr_id,
                            .qp = &qp,
                            .index = state.recv_index,
                            .status = status,
                            .opcode = by_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
                            .bytes = state.offset + grh_room(qp),
                            .immediate = packet.immediate,
                            .source_qp = packet.source_qp,
                            .source_lid = ethernet_ ? std::uint16_t{0} : lid_of(packet.source_node),
                            .flags = flags,
                            .of_send = false,
                            .solicited = packet.solicited});
  fetcher_.fetch(qp);
}

void RecvConsumer::complete_flushed(SimQp& qp, std::uint64_t wr_id, std::uint64_t index) {
  cqes_.complete(qp.recv_completions(), Completion{.visible = {},
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

void RecvConsumer::flush(SimQp& qp) {
  RecvQueue& queue = qp.recv;
  ResponderState& state = qp.responder;
  if (state.has_recv) complete_flushed(qp, state.recv.wr_id, state.recv_index);
  state.has_recv = false;
  for (; queue.used < queue.posted; ++queue.used) complete_flushed(qp, queue.at(queue.used).wr_id, queue.used);
  queue.fetched = queue.fetching = queue.posted;
}

}  // namespace verbscope::sim
