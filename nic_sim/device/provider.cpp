#include "nic_sim/device/provider.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "nic_sim/device/data_path.hpp"
#include "nic_sim/host/event_channel.hpp"
#include "nic_sim/link/addresses.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/port_speed.hpp"
#include "verbs/qp_rules.hpp"
#include "wire/packet.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {
namespace {

constexpr int kMaxCqEntries = 1 << 22;
constexpr int kMaxQps = 1 << 16;
constexpr int kPageBits = 12;      // 4 KB
constexpr int kHugePageBits = 21;  // 2 MB

}  // namespace

SimProvider::SimProvider(Nic& nic) : nic_(nic) {
  std::strncpy(device_.name, "sim0", sizeof device_.name - 1);
  device_.node_type = IBV_NODE_CA;
  device_.transport_type = IBV_TRANSPORT_IB;
}

std::vector<std::string> SimProvider::device_names() {
  return {device_.name};
}

ibv_context* SimProvider::open(const std::string& name) {
  if (name != device_.name) return no_object(ENODEV);
  auto* context = new SimContext{};
  context->device = &device_;
  context->ops.post_send = &post_send;
  context->ops.post_recv = &post_recv;
  context->ops.post_srq_recv = &post_srq_recv;
  context->ops.poll_cq = &poll_cq;
  context->ops.req_notify_cq = &req_notify_cq;
  context->cmd_fd = context->async_fd = -1;
  context->num_comp_vectors = 1;
  context->nic = &nic_;
  context->doorbell_registers = doorbell_registers_;
  return context;
}

int SimProvider::set_doorbell_registers(const std::string&, std::uint32_t total) {
  if (total > 0 && !facts(nic_.profile().wire.family).several_doorbell_registers) return EOPNOTSUPP;
  doorbell_registers_ = total;
  return 0;
}

int SimProvider::set_inline_recv(ibv_context* context, Transport transport, Verb verb, std::uint32_t bytes) {
  const ClusterWire& wire = nic_.profile().wire;
  const InlineReceiveRoom room = inline_receive_room(wire.family, transport, verb, wire.cqe_bytes);
  if (room.place == InlineReceive::nowhere && bytes > 0) return EOPNOTSUPP;
  if (bytes > room.max_payload.value) return EINVAL;
  as_sim(context).inline_recv = bytes;
  return 0;
}

int SimProvider::set_multi_packet_recv(ibv_context* context, std::uint32_t recvs) {
  if (recvs > 1 && !nic_.profile().wire.multi_packet_recv()) return EOPNOTSUPP;
  as_sim(context).recvs_per_descriptor = recvs;
  return 0;
}

int SimProvider::close(ibv_context* context) {
  if (as_sim(context).open_objects > 0) return EBUSY;
  delete &as_sim(context);
  return 0;
}

int SimProvider::query_device(ibv_context*, ibv_device_attr* attr) {
  *attr = ibv_device_attr{};
  std::strncpy(attr->fw_ver, "simulated", sizeof attr->fw_ver - 1);
  attr->max_mr_size = ~std::uint64_t{0};
  attr->max_qp = kMaxQps;
  attr->max_qp_wr = kMaxQueueDepth;
  attr->max_sge = kMaxSge;
  attr->max_cq = kMaxQps;
  attr->max_cqe = kMaxCqEntries;
  attr->max_mr = 1 << 20;
  attr->max_pd = 1 << 16;
  attr->max_ah = 1 << 20;
  attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = kMaxReads;
  attr->atomic_cap = IBV_ATOMIC_HCA;
  attr->max_srq = kMaxQps;
  attr->max_srq_wr = kMaxQueueDepth;
  attr->max_srq_sge = kMaxSge;
  attr->phys_port_cnt = static_cast<std::uint8_t>(nic_.profile().wire.ports);
  return 0;
}

int SimProvider::query_port(ibv_context*, std::uint8_t port, ibv_port_attr* attr) {
  if (port < 1 || port > nic_.profile().wire.ports) return EINVAL;
  *attr = ibv_port_attr{};
  attr->state = IBV_PORT_ACTIVE;
  attr->max_mtu = attr->active_mtu = mtu_from_bytes(static_cast<int>(nic_.profile().wire.mtu.value));
  attr->gid_tbl_len = 1;
  attr->pkey_tbl_len = 1;
  attr->max_msg_sz = kLongestMessage;
  const LinkFacts& link = facts(nic_.profile().wire.link_type);
  attr->lid = link.ethernet ? std::uint16_t{0} : lid_of(nic_.node());
  attr->sm_lid = link.ethernet ? 0 : 1;
  attr->phys_state = 5;  // LinkUp
  set_port_rate(*attr, nic_.profile().wire.port_rate);
  attr->link_layer = link.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

int SimProvider::query_gid(ibv_context*, std::uint8_t port, std::uint32_t index, ibv_gid_entry* entry) {
  if (port < 1 || port > nic_.profile().wire.ports) return EINVAL;
  if (index > 0) return ENODATA;
  *entry = ibv_gid_entry{};
  const LinkType link = nic_.profile().wire.link_type;
  entry->gid = gid_of(link, nic_.node(), port);
  entry->port_num = port;
  entry->gid_type = facts(link).ethernet ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
  return 0;
}

ibv_pd* SimProvider::alloc_pd(ibv_context* context) {
  auto* pd = new SimPd{};
  pd->context = context;
  ++as_sim(context).open_objects;
  return pd;
}

int SimProvider::dealloc_pd(ibv_pd* pd) {
  if (as_sim(pd).users > 0) return EBUSY;
  if (as_sim(pd).parent != nullptr) --as_sim(as_sim(pd).parent).users;
  --as_sim(pd->context).open_objects;
  delete &as_sim(pd);
  return 0;
}

// A context of mlx4 has one register: on mlx4 a thread domain models a separate context of the thread.
ibv_td* SimProvider::alloc_td(ibv_context* context) {
  auto* td = new SimTd{};
  td->context = context;
  ++as_sim(context).open_objects;
  return td;
}

int SimProvider::dealloc_td(ibv_td* td) {
  --as_sim(td->context).open_objects;
  delete static_cast<SimTd*>(td);
  return 0;
}

ibv_pd* SimProvider::alloc_parent_domain(ibv_pd* pd, ibv_td*) {
  ibv_pd* const domain = alloc_pd(pd->context);
  as_sim(domain).parent = pd;
  ++as_sim(pd).users;
  return domain;
}

// The kernel pins memory in pages of this size, even if they are part of larger ones.
constexpr std::uint64_t kRegisteredPage = 4096;

ibv_mr* SimProvider::reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  constexpr int kRemoteWrites = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & kRemoteWrites) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return no_object(EINVAL);
  auto* mr = new SimMr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->access = access;
  mr->page_bits = (access & IBV_ACCESS_HUGETLB) != 0 ? kHugePageBits : kPageBits;
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  mr->pages.resize(length == 0 ? 0 : ((begin + length - 1) >> mr->page_bits) - (begin >> mr->page_bits) + 1);
  mr->lkey = mr->rkey = nic_.memory().add(*mr);
  if (SimThread* const thread = nic_.running_thread()) {
    const std::uint64_t pages = length == 0 ? 0 : (begin + length - 1) / kRegisteredPage - begin / kRegisteredPage + 1;
    const HostProfile& host = nic_.profile().host;
    thread->spend(host.register_call + host.register_page * static_cast<std::int64_t>(pages));
  }
  ++as_sim(pd).users;
  return mr;
}

int SimProvider::dereg_mr(ibv_mr* mr) {
  nic_.memory().remove(*static_cast<SimMr*>(mr));
  --as_sim(mr->pd).users;
  delete static_cast<SimMr*>(mr);
  return 0;
}

ibv_comp_channel* SimProvider::create_comp_channel(ibv_context* context) {
  auto* channel = new SimChannel{};
  channel->context = context;
  channel->fd = -1;
  channel->wakeup = nic_.profile().host.event_wakeup;
  ++as_sim(context).open_objects;
  return channel;
}

int SimProvider::destroy_comp_channel(ibv_comp_channel* channel) {
  if (channel->refcnt > 0) return EBUSY;
  --as_sim(channel->context).open_objects;
  delete static_cast<SimChannel*>(channel);
  return 0;
}

ibv_cq* SimProvider::create_cq(ibv_context* context, int entries, ibv_comp_channel* channel) {
  if (entries < 1 || entries > kMaxCqEntries) return no_object(EINVAL);
  auto* cq = new SimCq{};
  cq->context = context;
  cq->cqe = static_cast<int>(std::bit_ceil(static_cast<unsigned>(entries)));
  cq->channel = channel;
  if (channel != nullptr) ++channel->refcnt;
  ++as_sim(context).open_objects;
  return cq;
}

int SimProvider::destroy_cq(ibv_cq* cq) {
  auto* sim = static_cast<SimCq*>(cq);
  if (sim->users > 0) return EBUSY;
  if (cq->channel != nullptr) {
    std::erase_if(static_cast<SimChannel*>(cq->channel)->pending, [sim](const auto& event) { return event.cq == sim; });
    --cq->channel->refcnt;
    cq->channel = nullptr;
  }
  --as_sim(cq->context).open_objects;
  sim->arming = Arming{};
  sim->places.resize(1);
  retired_cqs_.emplace_back(sim);
  return 0;
}

ibv_srq* SimProvider::create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  const ibv_srq_attr& requested = attr->attr;
  if (requested.max_wr < 1 || requested.max_wr > kMaxQueueDepth || requested.max_sge > kMaxSge)
    return no_object(EINVAL);
  SimSrq* srq = srqs_.emplace_back(std::make_unique<SimSrq>()).get();
  srq->context = pd->context;
  srq->pd = pd;
  srq->srq_context = attr->srq_context;
  srq->queue.resize(requested.max_wr, requested.max_sge, requested.max_wr + 1, kSrqNextSegment);
  ++as_sim(pd).users;
  return srq;
}

int SimProvider::query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  const RecvQueue& queue = static_cast<SimSrq*>(srq)->queue;
  *attr = ibv_srq_attr{.max_wr = queue.depth, .max_sge = queue.max_sge, .srq_limit = 0};
  return 0;
}

int SimProvider::destroy_srq(ibv_srq* srq) {
  auto* sim = static_cast<SimSrq*>(srq);
  if (sim->users > 0) return EBUSY;
  --as_sim(srq->pd).users;
  return 0;
}

bool SimProvider::resolve(const ibv_ah_attr& attr, std::uint32_t* node) const {
  if (attr.port_num < 1 || attr.port_num > nic_.profile().wire.ports) return false;
  const LinkType link = nic_.profile().wire.link_type;
  if (attr.is_global != 0) {
    const auto named = node_of(link, attr.grh.dgid);
    if (!named) return false;
    *node = *named;
  } else {
    if (attr.dlid == 0 || facts(link).ethernet) return false;  // RoCE has no LIDs
    *node = attr.dlid - 1u;
  }
  return *node < nic_.fabric().nodes();
}

ibv_ah* SimProvider::create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  std::uint32_t node = 0;
  if (!resolve(*attr, &node)) return no_object(EINVAL);
  auto* ah = new SimAh{};
  ah->context = pd->context;
  ah->pd = pd;
  ah->node = node;
  ah->port = static_cast<std::uint8_t>(attr->port_num - 1);
  ah->global = attr->is_global != 0;
  ah->priority = priority_of(nic_.profile().wire.link_type, *attr);
  ++as_sim(pd).users;
  return ah;
}

int SimProvider::destroy_ah(ibv_ah* ah) {
  --as_sim(ah->pd).users;
  delete static_cast<SimAh*>(ah);
  return 0;
}

}  // namespace verbscope::sim
