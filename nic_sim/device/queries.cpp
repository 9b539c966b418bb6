// What the simulated device tells about itself: its limits and capabilities, ports, GIDs and P_Keys.
#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "nic_sim/device/polling.hpp"
#include "nic_sim/device/provider.hpp"
#include "nic_sim/link/addresses.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/ibv_codes.hpp"
#include "verbs/port_speed.hpp"
#include "wire/packet.hpp"

namespace verbscope::sim {
namespace {

// The default partition, with full membership: InfiniBand Architecture Specification 1.3, volume 1, section 10.9.1.2.
constexpr std::uint16_t kDefaultPkey = 0xffff;

}  // namespace

int SimProvider::query_device(ibv_context*, ibv_device_attr* attr) {
  *attr = ibv_device_attr{};
  std::strncpy(attr->fw_ver, "simulated", sizeof attr->fw_ver - 1);
  attr->node_guid = attr->sys_image_guid = big_endian(nic_.node() + 1u);
  attr->max_mr_size = ~std::uint64_t{0};
  attr->page_size_cap = std::uint64_t{1} << kPageBits | std::uint64_t{1} << kHugePageBits;
  attr->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
                           IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
                           IBV_DEVICE_XRC;
  attr->vendor_id = kMellanox;
  attr->vendor_part_id = static_cast<std::uint32_t>(nic_.profile().nic.pci_device_id);
  attr->max_qp = kMaxQps;
  attr->max_qp_wr = kMaxQueueDepth;
  attr->max_sge = attr->max_sge_rd = kMaxSge;
  attr->max_cq = kMaxQps;
  attr->max_cqe = kMaxCqEntries;
  attr->max_mr = attr->max_mw = 1 << 20;
  attr->max_pd = 1 << 16;
  attr->max_ah = 1 << 20;
  attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = kMaxReads;
  attr->max_res_rd_atom = kMaxReads * kMaxQps;
  attr->atomic_cap = IBV_ATOMIC_HCA;
  attr->max_srq = kMaxQps;
  attr->max_srq_wr = kMaxQueueDepth;
  attr->max_srq_sge = kMaxSge;
  attr->max_mcast_grp = MulticastGroups::kMaxGroups;
  attr->max_mcast_qp_attach = MulticastGroups::kMaxQps;
  attr->max_total_mcast_qp_attach = MulticastGroups::kMaxGroups * MulticastGroups::kMaxQps;
  attr->max_pkeys = kPkeys;
  attr->phys_port_cnt = static_cast<std::uint8_t>(nic_.profile().wire.ports);
  return 0;
}

int SimProvider::query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                                 std::size_t attr_size) {
  if ((input != nullptr && input->comp_mask != 0) || attr_size < sizeof attr->orig_attr) return EINVAL;
  ibv_device_attr_ex known{};
  query_device(context, &known.orig_attr);
  known.completion_timestamp_mask = ~std::uint64_t{0};
  known.hca_core_clock = kHcaClockKhz;
  known.device_cap_flags_ex = known.orig_attr.device_cap_flags;
  known.phys_port_cnt_ex = known.orig_attr.phys_port_cnt;
  std::memset(attr, 0, attr_size);
  std::memcpy(attr, &known, std::min(attr_size, sizeof known));
  return 0;
}

int SimProvider::query_port(ibv_context*, std::uint8_t port, ibv_port_attr* attr) {
  if (port < 1 || port > nic_.profile().wire.ports) return EINVAL;
  *attr = ibv_port_attr{};
  attr->state = IBV_PORT_ACTIVE;
  attr->max_mtu = attr->active_mtu = mtu_from_bytes(static_cast<int>(nic_.profile().wire.mtu.value));
  attr->gid_tbl_len = static_cast<int>(gid_table_length(nic_.profile().wire.link_type));
  attr->pkey_tbl_len = kPkeys;
  attr->max_msg_sz = kLongestMessage;
  const LinkFacts& link = facts(nic_.profile().wire.link_type);
  attr->lid = link.ethernet ? std::uint16_t{0} : lid_of(nic_.node());
  attr->sm_lid = link.ethernet ? 0 : 1;
  attr->max_vl_num = 1;
  attr->phys_state = 5;  // LinkUp
  set_port_rate(*attr, nic_.profile().wire.port_rate);
  attr->link_layer = link.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

int SimProvider::query_gid(ibv_context*, std::uint8_t port, std::uint32_t index, ibv_gid_entry* entry) {
  if (port < 1 || port > nic_.profile().wire.ports) return EINVAL;
  const LinkType link = nic_.profile().wire.link_type;
  const GlobalHeader header = header_of_gid(link, index);
  if (header == GlobalHeader::none) return EINVAL;
  *entry = ibv_gid_entry{};
  entry->gid = gid_of(header, nic_.node(), port);
  entry->gid_index = index;
  entry->port_num = port;
  const bool udp = header == GlobalHeader::ipv4 || header == GlobalHeader::ipv6;
  entry->gid_type = !facts(link).ethernet ? IBV_GID_TYPE_IB : udp ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
  return 0;
}

int SimProvider::query_pkey(ibv_context*, std::uint8_t port, int index, __be16* pkey) {
  if (port < 1 || port > nic_.profile().wire.ports || index < 0 || index >= kPkeys) {
    errno = EINVAL;
    return -1;
  }
  *pkey = htobe16(kDefaultPkey);
  return 0;
}

// Packets are written to memory in the order of their message, and none becomes visible before one in front of it.
int SimProvider::query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, std::uint32_t flags) {
  const std::optional<Verb> verb = verb_of(opcode);
  const bool moves_payload = verb && !facts(*verb).atomic && facts(as_sim(qp).transport).verbs.has(*verb);
  return flags == 0 && moves_payload ? 1 : 0;
}

}  // namespace verbscope::sim
