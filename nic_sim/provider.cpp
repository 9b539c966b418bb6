#include "nic_sim/provider.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "nic_sim/data_path.hpp"
#include "nic_sim/qp_state.hpp"
#include "nic_sim/send_layout.hpp"

namespace verbscope::sim {
namespace {

// What the simulated adapter offers where the profile does not say. Generous, as adapters are.
constexpr int kMaxQueueDepth = 16384;
constexpr int kMaxSge = 16;
constexpr int kMaxCqEntries = 1 << 22;
constexpr int kMaxQps = 1 << 16;
constexpr std::uint64_t kGidPrefix = 0xfe80'0000'0000'0000;

template <class T>
T* fail_with(int error) {
  errno = error;
  return nullptr;
}

int no_events(ibv_cq*, int) {
  return EOPNOTSUPP;
}

// Subnets are per port, so that the LID of a node is the same on each: its number and one.
std::uint16_t lid_of(std::uint32_t node) {
  return static_cast<std::uint16_t>(node + 1);
}

std::uint64_t big_endian(std::uint64_t value) {
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

ibv_gid gid_of(std::uint32_t node, std::uint8_t port) {
  ibv_gid gid{};
  gid.global.subnet_prefix = big_endian(kGidPrefix);
  gid.global.interface_id = big_endian(std::uint64_t{node + 1} << 8 | port);
  return gid;
}

ibv_mtu mtu_code(std::uint64_t bytes) {
  return static_cast<ibv_mtu>(std::countr_zero(std::bit_floor(bytes)) - 7);  // 256 B is code 1
}

std::uint32_t mtu_bytes(ibv_mtu code) {
  return 128u << code;
}

Transport transport_of(ibv_qp_type type) {
  return type == IBV_QPT_RC ? Transport::rc : type == IBV_QPT_UC ? Transport::uc : Transport::ud;
}

void size_send_queue(SimQp& qp, const ibv_qp_cap& cap, NicFamily family) {
  SendQueue& queue = qp.send;
  queue.depth = std::max(cap.max_send_wr, 1u);
  queue.max_sge = std::max(cap.max_send_sge, 1u);
  queue.max_inline = cap.max_inline_data;
  const SlotSize slot = send_slot(family, qp.transport, cap.max_inline_data, cap.max_send_sge);
  queue.before_data = begin_layout(family, Verb::send, qp.transport);
  queue.slot_bytes = slot.slot;
  const std::size_t places = std::bit_ceil(queue.depth);
  queue.ring_bytes = std::bit_ceil(std::uint64_t{queue.depth} * (slot.slot > 0 ? slot.slot : slot.largest));
  queue.ring.resize(places);
  queue.batches.resize(places);
  queue.sges.resize(places * queue.max_sge);
  queue.inline_data.resize(places * queue.max_inline);
}

void size_recv_queue(SimQp& qp, const ibv_qp_cap& cap) {
  RecvQueue& queue = qp.recv;
  queue.depth = cap.max_recv_wr;
  queue.max_sge = std::max(cap.max_recv_sge, 1u);
  queue.slot_bytes = static_cast<std::uint32_t>(std::bit_ceil(queue.max_sge * kRecvStride.value));
  const std::size_t places = std::bit_ceil(std::max(queue.depth, 1u));
  queue.ring.resize(places);
  queue.sges.resize(places * queue.max_sge);
}

// Removes the completions of `qp` that nobody has polled, as the drivers do when a QP is destroyed or reset.
void clean(SimCq& cq, const SimQp& qp) {
  std::uint64_t kept = cq.polled;
  for (std::uint64_t i = cq.polled; i < cq.written; ++i) {
    if (cq.at(i).qp != &qp) cq.at(kept++) = cq.at(i);
  }
  cq.written = kept;
}

void reset(SimQp& qp) {
  qp.nic->requester().forget(qp);
  qp.nic->responder().forget(qp);
  clean(qp.send_completions(), qp);
  clean(qp.recv_completions(), qp);
  SendQueue& send = qp.send;
  send.posted = send.arrived = send.next = send.done = send.freed = 0;
  send.posted_bytes = send.batches_posted = send.batches_arrived = 0;
  RecvQueue& recv = qp.recv;
  recv.posted = recv.fetched = recv.fetching = recv.used = recv.freed = 0;
  ++qp.life;
  qp.requester.reading_for_ack = qp.requester.timer_runs = false;
  const std::uint32_t waiting_packets = qp.responder.waiting_packets;  // are still in line
  qp.responder = ResponderState{.unit = qp.responder.unit, .waiting_packets = waiting_packets};
}

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
  if (name != device_.name) return fail_with<ibv_context>(ENODEV);
  auto* context = new SimContext{};
  context->device = &device_;
  context->ops.post_send = &post_send;
  context->ops.post_recv = &post_recv;
  context->ops.poll_cq = &poll_cq;
  context->ops.req_notify_cq = &no_events;
  context->cmd_fd = context->async_fd = -1;
  context->num_comp_vectors = 1;
  context->nic = &nic_;
  return context;
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
  attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 16;
  attr->phys_port_cnt = static_cast<std::uint8_t>(nic_.profile().wire.ports);
  return 0;
}

int SimProvider::query_port(ibv_context*, std::uint8_t port, ibv_port_attr* attr) {
  if (port < 1 || port > nic_.profile().wire.ports) return EINVAL;
  *attr = ibv_port_attr{};
  attr->state = IBV_PORT_ACTIVE;
  attr->max_mtu = attr->active_mtu = mtu_code(nic_.profile().wire.mtu.value);
  attr->gid_tbl_len = 1;
  attr->pkey_tbl_len = 1;
  attr->max_msg_sz = 1u << 31;
  attr->lid = lid_of(nic_.node());
  attr->sm_lid = 1;
  attr->phys_state = 5;    // LinkUp
  attr->active_width = 2;  // 4x
  attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

int SimProvider::query_gid(ibv_context*, std::uint8_t port, std::uint32_t index, ibv_gid_entry* entry) {
  if (port < 1 || port > nic_.profile().wire.ports) return EINVAL;
  if (index > 0) return ENODATA;
  *entry = ibv_gid_entry{};
  entry->gid = gid_of(nic_.node(), port);
  entry->port_num = port;
  entry->gid_type = IBV_GID_TYPE_IB;
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
  --as_sim(pd->context).open_objects;
  delete &as_sim(pd);
  return 0;
}

ibv_mr* SimProvider::reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  constexpr int kRemoteWrites = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & kRemoteWrites) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) return fail_with<ibv_mr>(EINVAL);
  auto* mr = new SimMr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->access = access;
  mr->lkey = mr->rkey = nic_.add_mr(*mr);
  ++as_sim(pd).users;
  return mr;
}

int SimProvider::dereg_mr(ibv_mr* mr) {
  nic_.remove_mr(*static_cast<SimMr*>(mr));
  --as_sim(mr->pd).users;
  delete static_cast<SimMr*>(mr);
  return 0;
}

ibv_cq* SimProvider::create_cq(ibv_context* context, int entries) {
  if (entries < 1 || entries > kMaxCqEntries) return fail_with<ibv_cq>(EINVAL);
  auto* cq = new SimCq{};
  cq->context = context;
  cq->cqe = static_cast<int>(std::bit_ceil(static_cast<unsigned>(entries)));
  ++as_sim(context).open_objects;
  return cq;
}

int SimProvider::destroy_cq(ibv_cq* cq) {
  auto* sim = static_cast<SimCq*>(cq);
  if (sim->users > 0) return EBUSY;
  --as_sim(cq->context).open_objects;
  delete sim;
  return 0;
}

ibv_qp* SimProvider::create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const ibv_qp_cap& cap = attr->cap;
  const bool known = attr->qp_type == IBV_QPT_RC || attr->qp_type == IBV_QPT_UC || attr->qp_type == IBV_QPT_UD;
  if (!known || attr->srq != nullptr) return fail_with<ibv_qp>(EOPNOTSUPP);
  if (attr->send_cq == nullptr || attr->recv_cq == nullptr || cap.max_send_wr > kMaxQueueDepth ||
      cap.max_recv_wr > kMaxQueueDepth || cap.max_send_sge > kMaxSge || cap.max_recv_sge > kMaxSge ||
      cap.max_inline_data > nic_.profile().wire.max_inline.value) {
    return fail_with<ibv_qp>(EINVAL);
  }
  SimQp& qp = *qps_.emplace_back(std::make_unique<SimQp>());
  qp.context = pd->context;
  qp.pd = pd;
  qp.send_cq = attr->send_cq;
  qp.recv_cq = attr->recv_cq;
  qp.qp_type = attr->qp_type;
  qp.state = IBV_QPS_RESET;
  qp.nic = &nic_;
  qp.transport = transport_of(attr->qp_type);
  qp.signal_all = attr->sq_sig_all != 0;
  qp.path_mtu = static_cast<std::uint32_t>(nic_.profile().wire.mtu.value);
  qp.caps = cap;
  size_send_queue(qp, cap, nic_.profile().wire.family);
  size_recv_queue(qp, cap);
  qp.qp_num = nic_.add_qp(qp);
  ++as_sim(pd).users;
  ++qp.send_completions().users;
  ++qp.recv_completions().users;
  return &qp;
}

bool SimProvider::resolve(const ibv_ah_attr& attr, std::uint32_t* node) const {
  if (attr.port_num < 1 || attr.port_num > nic_.profile().wire.ports) return false;
  if (attr.is_global != 0) {
    const std::uint64_t id = big_endian(attr.grh.dgid.global.interface_id);
    if (id >> 8 == 0) return false;
    *node = static_cast<std::uint32_t>((id >> 8) - 1);
  } else {
    if (attr.dlid == 0) return false;
    *node = attr.dlid - 1u;
  }
  return *node < nic_.fabric().nodes();
}

int SimProvider::modify_qp(ibv_qp* verbs_qp, ibv_qp_attr* attr, int mask) {
  SimQp& qp = as_sim(verbs_qp);
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : qp.state;
  if ((mask & IBV_QP_CUR_STATE) != 0 && attr->cur_qp_state != qp.state) return EINVAL;
  if (!transition_allowed(qp.qp_type, qp.state, to, mask)) return EINVAL;
  if ((mask & IBV_QP_TIMEOUT) != 0 && attr->timeout >= 32) return EINVAL;  // five bits
  if ((mask & IBV_QP_PORT) != 0) {
    if (attr->port_num < 1 || attr->port_num > nic_.profile().wire.ports) return EINVAL;
    qp.port = static_cast<std::uint8_t>(attr->port_num - 1);
    qp.attributes.port_num = attr->port_num;
  }
  if ((mask & IBV_QP_AV) != 0) {
    if (!resolve(attr->ah_attr, &qp.peer_node)) return EINVAL;
    qp.has_grh = attr->ah_attr.is_global != 0;
    qp.attributes.ah_attr = attr->ah_attr;
  }
  if ((mask & IBV_QP_PATH_MTU) != 0) {
    const std::uint32_t bytes = mtu_bytes(attr->path_mtu);
    if (bytes < 256 || bytes > nic_.profile().wire.mtu.value) return EINVAL;
    qp.path_mtu = bytes;
    qp.attributes.path_mtu = attr->path_mtu;
  }
  if ((mask & IBV_QP_QKEY) != 0) qp.attributes.qkey = qp.qkey = attr->qkey;
  if ((mask & IBV_QP_DEST_QPN) != 0) qp.attributes.dest_qp_num = qp.peer_qp = attr->dest_qp_num;
  if ((mask & IBV_QP_RQ_PSN) != 0) qp.attributes.rq_psn = qp.responder.expected = attr->rq_psn;
  if ((mask & IBV_QP_SQ_PSN) != 0) {
    qp.attributes.sq_psn = attr->sq_psn;
    qp.requester.sequence_to_post = qp.requester.sequence_unsent = attr->sq_psn;
    qp.requester.acknowledged = attr->sq_psn - 1;
  }
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) qp.attributes.qp_access_flags = attr->qp_access_flags;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) qp.attributes.min_rnr_timer = attr->min_rnr_timer;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) qp.attributes.max_dest_rd_atomic = attr->max_dest_rd_atomic;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) qp.attributes.max_rd_atomic = attr->max_rd_atomic;
  if ((mask & IBV_QP_TIMEOUT) != 0) qp.attributes.timeout = attr->timeout;
  if ((mask & IBV_QP_RETRY_CNT) != 0) qp.requester.retries_left = qp.attributes.retry_cnt = attr->retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) qp.requester.rnr_retries_left = qp.attributes.rnr_retry = attr->rnr_retry;
  if (to == IBV_QPS_ERR) {
    nic_.fail_qp(qp);
  } else if (to == IBV_QPS_RESET) {
    reset(qp);
  }
  qp.state = to;
  return 0;
}

int SimProvider::query_qp(ibv_qp* verbs_qp, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  const SimQp& qp = as_sim(verbs_qp);
  *attr = qp.attributes;
  attr->qp_state = attr->cur_qp_state = qp.state;
  attr->cap = qp.caps;
  *init = ibv_qp_init_attr{};
  init->send_cq = qp.send_cq;
  init->recv_cq = qp.recv_cq;
  init->cap = qp.caps;
  init->qp_type = qp.qp_type;
  init->sq_sig_all = qp.signal_all ? 1 : 0;
  return 0;
}

int SimProvider::destroy_qp(ibv_qp* verbs_qp) {
  SimQp& qp = as_sim(verbs_qp);
  clean(qp.send_completions(), qp);
  clean(qp.recv_completions(), qp);
  nic_.remove_qp(qp);
  qp.state = IBV_QPS_RESET;
  --as_sim(qp.pd).users;
  --qp.send_completions().users;
  --qp.recv_completions().users;
  return 0;
}

ibv_ah* SimProvider::create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  std::uint32_t node = 0;
  if (!resolve(*attr, &node)) return fail_with<ibv_ah>(EINVAL);
  auto* ah = new SimAh{};
  ah->context = pd->context;
  ah->pd = pd;
  ah->node = node;
  ah->port = static_cast<std::uint8_t>(attr->port_num - 1);
  ah->global = attr->is_global != 0;
  ++as_sim(pd).users;
  return ah;
}

int SimProvider::destroy_ah(ibv_ah* ah) {
  --as_sim(ah->pd).users;
  delete static_cast<SimAh*>(ah);
  return 0;
}

}  // namespace verbscope::sim
