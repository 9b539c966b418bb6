#include "simulate/server/connection_answers.hpp"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbscope::simulate {
namespace {

constexpr std::uint8_t kPort = 1;  // of the device
constexpr std::uint16_t kPkey = 0xffff;
constexpr std::uint8_t kHopLimit = 64;        // of RoCE v2: IPV6_DEFAULT_HOPLIMIT
constexpr std::uint8_t kSubnetTimeout = 18;   // packet life time on InfiniBand: OpenSM's default
constexpr std::uint8_t kRocePacketLife = 16;  // CMA_IBOE_PACKET_LIFETIME
constexpr std::uint8_t kExactly = 2 << 6;     // selector of a path record's value
constexpr std::uint8_t kReversibleOnePath = 0x81;

bool ethernet(const CmDevice& device) {
  return device.port.link_layer == IBV_LINK_LAYER_ETHERNET;
}
std::uint8_t packet_life(const CmDevice& device) {
  return ethernet(device) ? kRocePacketLife : kSubnetTimeout;
}

// What a path record of either layout has.
struct Path {
  ibv_gid to;
  ibv_gid from;
  __be16 to_lid;
  __be16 from_lid;
  std::uint8_t hop_limit;
};

// A group that the identifier has not joined has the GID of IPoIB's neighbours.
ibv_gid gid_of_peer(const CmId& id, const CmDevice& device) {
  return id.to_group() ? device.network.group_gid(id.to, RDMA_PS_IPOIB) : device.network.gid(id.peer_node);
}

Path path_of(const CmId& id, const CmDevice& device) {
  const auto lid = [&device](std::uint32_t node) { return ethernet(device) ? __be16{0} : htobe16(sim::lid_of(node)); };
  return {.to = gid_of_peer(id, device),
          .from = device.network.gid(id.node),
          .to_lid = id.to_group() ? __be16{0} : lid(id.peer_node),
          .from_lid = lid(id.node),
          .hop_limit = ethernet(device) ? kHopLimit : std::uint8_t{0}};
}

ib_uverbs_ah_attr global_path(const ibv_gid& gid, std::uint16_t lid, const CmDevice& device) {
  ib_uverbs_ah_attr attr{};
  attr.port_num = kPort;
  attr.dlid = lid;
  attr.is_global = 1;
  std::memcpy(attr.grh.dgid, gid.raw, sizeof attr.grh.dgid);
  attr.grh.sgid_index = device.network.gid_index();
  attr.grh.hop_limit = ethernet(device) ? kHopLimit : std::uint8_t{0};
  return attr;
}

// Connections that this side may begin or has begun take attributes of the request; others only the state.
bool takes_part(const CmId& id) {
  return id.state >= CmState::request_sent && !id.datagram();
}

void set_init(const CmId& id, ib_uverbs_qp_attr& attr) {
  attr.port_num = kPort;
  attr.qp_attr_mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (id.datagram()) {
    attr.qkey = id.qkey;
    attr.qp_attr_mask |= IBV_QP_QKEY;
    return;
  }
  attr.qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
  if (!takes_part(id)) return;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (id.responder_resources > 0) attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

void set_ready_to_receive(const CmId& id, const CmDevice& device, ib_uverbs_qp_attr& attr) {
  attr.ah_attr = path_to_peer(id, device);
  attr.path_mtu = device.port.active_mtu;
  attr.dest_qp_num = id.peer_qp_num;
  attr.rq_psn = id.psn;
  attr.max_dest_rd_atomic = id.responder_resources;
  attr.qp_attr_mask |=
      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

void set_ready_to_send(const CmId& id, const CmDevice& device, ib_uverbs_qp_attr& attr) {
  attr.sq_psn = id.peer_psn;
  attr.timeout = id.ack_timeout.value_or(ack_timeout_code(device));
  attr.retry_cnt = id.retry_count;
  attr.rnr_retry = id.rnr_retry_count;
  attr.max_rd_atomic = id.initiator_depth;
  attr.qp_attr_mask |= IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

}  // namespace

bool has_route(const CmId& id) {
  return id.on_device && id.state >= CmState::route_resolved && id.state != CmState::listening;
}

std::uint8_t ack_timeout_code(const CmDevice& device) {
  return static_cast<std::uint8_t>(packet_life(device) + 1);
}

ucma_abi_query_addr_resp query_addresses(const CmId& id, const CmDevice& device) {
  ucma_abi_query_addr_resp answer{};
  answer.src_addr = id.from;
  answer.dst_addr = id.to;
  answer.src_size = static_cast<std::uint16_t>(size_of_family(id.from.ss_family));
  answer.dst_size = static_cast<std::uint16_t>(size_of_family(id.to.ss_family));
  if (!id.on_device) return answer;
  answer.node_guid = device.guid;
  answer.port_num = kPort;
  answer.pkey = htobe16(kPkey);
  return answer;
}

ucma_abi_query_addr_resp query_gids(const CmId& id, const CmDevice& device) {
  ucma_abi_query_addr_resp answer = query_addresses(id, device);
  answer.src_size = answer.dst_size = sizeof(sockaddr_ib);
  answer.src_addr = answer.dst_addr = CmAddress{};
  answer.src_addr.ss_family = answer.dst_addr.ss_family = AF_IB;
  if (!id.on_device) return answer;
  answer.src_addr = device.network.address_of(AF_IB, id.node, port_of(id.from));
  if (id.state >= CmState::address_resolved && id.state != CmState::listening) {
    answer.dst_addr = device.network.address_of(AF_IB, id.peer_node, port_of(id.to));
    const ibv_gid gid = gid_of_peer(id, device);
    std::memcpy(reinterpret_cast<sockaddr_ib&>(answer.dst_addr).sib_addr.sib_raw, gid.raw, sizeof gid.raw);
  }
  return answer;
}

ucma_abi_query_route_resp query_route(const CmId& id, const CmDevice& device) {
  ucma_abi_query_route_resp answer{};
  std::memcpy(&answer.src_addr, &id.from, sizeof answer.src_addr);
  std::memcpy(&answer.dst_addr, &id.to, sizeof answer.dst_addr);
  if (!id.on_device) return answer;
  answer.node_guid = device.guid;
  answer.port_num = kPort;
  answer.num_paths = has_route(id) ? 1 : 0;
  const Path path = path_of(id, device);
  ib_user_path_rec& record = answer.ib_route[0];
  std::memcpy(record.sgid, path.from.raw, sizeof record.sgid);
  record.pkey = htobe16(kPkey);
  if (id.state < CmState::address_resolved || id.state == CmState::listening) return answer;
  std::memcpy(record.dgid, path.to.raw, sizeof record.dgid);
  record.slid = path.from_lid;
  record.dlid = path.to_lid;
  record.reversible = 1;
  record.numb_path = 1;
  record.hop_limit = path.hop_limit;
  record.traffic_class = id.type_of_service;
  record.mtu_selector = record.rate_selector = record.packet_life_time_selector = kExactly >> 6;
  record.mtu = device.port.active_mtu;
  record.packet_life_time = packet_life(device);
  return answer;
}

std::vector<std::byte> query_path(const CmId& id, const CmDevice& device) {
  ucma_abi_query_path_resp head{};
  head.num_paths = has_route(id) ? 1 : 0;
  ibv_path_data data{};
  data.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
  if (head.num_paths > 0) {
    const Path path = path_of(id, device);
    data.path.dgid = path.to;
    data.path.sgid = path.from;
    data.path.dlid = path.to_lid;
    data.path.slid = path.from_lid;
    data.path.flowlabel_hoplimit = htobe32(path.hop_limit);
    data.path.tclass = id.type_of_service;
    data.path.reversible_numpath = kReversibleOnePath;
    data.path.pkey = htobe16(kPkey);
    data.path.mtu = static_cast<std::uint8_t>(kExactly | device.port.active_mtu);
    data.path.rate = kExactly;
    data.path.packetlifetime = static_cast<std::uint8_t>(kExactly | packet_life(device));
  }
  std::vector<std::byte> answer(sizeof head + (head.num_paths > 0 ? sizeof data : 0));
  std::memcpy(answer.data(), &head, sizeof head);
  std::memcpy(answer.data() + sizeof head, &data, answer.size() - sizeof head);
  return answer;
}

ib_uverbs_ah_attr path_to_peer(const CmId& id, const CmDevice& device) {
  const Path path = path_of(id, device);
  ib_uverbs_ah_attr attr = global_path(path.to, be16toh(path.to_lid), device);
  attr.grh.traffic_class = id.type_of_service;
  if (!ethernet(device)) {
    attr.is_global = 0;
    attr.grh = {};
  }
  return attr;
}

ib_uverbs_ah_attr path_to_group(const CmMembership& membership, const CmDevice& device) {
  return global_path(membership.gid, membership.lid, device);
}

int init_qp_attributes(const CmId& id, const CmDevice& device, std::uint32_t state, ib_uverbs_qp_attr& attr) {
  attr = ib_uverbs_qp_attr{};
  attr.qp_state = state;
  attr.qp_attr_mask = IBV_QP_STATE;
  if (!id.on_device || state > IBV_QPS_ERR) return EINVAL;
  if (state == IBV_QPS_INIT || !takes_part(id)) {
    set_init(id, attr);
    return 0;
  }
  const bool peer_known = id.state != CmState::request_sent && id.state != CmState::ended;
  if (!peer_known || (state != IBV_QPS_RTR && state != IBV_QPS_RTS)) return EINVAL;
  if (state == IBV_QPS_RTR) {
    set_ready_to_receive(id, device, attr);
  } else {
    set_ready_to_send(id, device, attr);
  }
  return 0;
}

}  // namespace verbscope::simulate
