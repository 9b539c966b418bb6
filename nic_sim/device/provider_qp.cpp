// The control path of QPs: queue sizes, states, attributes.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>
#include <utility>

#include "nic_sim/device/data_path.hpp"
#include "nic_sim/device/provider.hpp"
#include "nic_sim/link/addresses.hpp"
#include "nic_sim/nic/send_layout.hpp"
#include "nic_sim/nic/windows.hpp"
#include "verbs/endpoint.hpp"
#include "verbs/ibv_codes.hpp"
#include "verbs/qp_rules.hpp"
#include "wire/wqe.hpp"

namespace verbscope::sim {
namespace {

void size_send_queue(SimQp& qp, const ibv_qp_cap& cap, NicFamily family) {
  SendQueue& queue = qp.send;
  queue.depth = std::max(cap.max_send_wr, 1u);
  queue.max_sge = std::max(cap.max_send_sge, 1u);
  queue.max_inline = cap.max_inline_data;
  const SlotSize slot = send_slot(family, qp.transport, cap.max_inline_data, cap.max_send_sge);
  queue.verbs = &transport_rules(family, qp.transport);
  queue.slot_bytes = slot.slot;
  queue.ring_bytes = std::bit_ceil(std::uint64_t{queue.depth} * (slot.slot > 0 ? slot.slot : slot.largest));
  queue.ring.resize(queue.depth);
  queue.sges = std::make_unique<ibv_sge[]>(queue.ring.size() * queue.max_sge);
  queue.inline_data = std::make_unique<std::byte[]>(queue.ring.size() * queue.max_inline);
}

void size_recv_queue(SimQp& qp, const ibv_qp_cap& cap) {
  if (qp.srq != nullptr) return;
  qp.recv.resize(cap.max_recv_wr, cap.max_recv_sge, std::max(cap.max_recv_wr, 1u), Bytes(0));
  if (qp.inline_place != InlineReceive::in_recv) return;
  const Bytes stride = recv_stride(Bytes(qp.recv.slot_bytes), qp.transport, Bytes(qp.inline_recv));
  qp.recv.slot_bytes = static_cast<std::uint32_t>(stride.value);
}

// `bytes`: set by set_inline_recv() on the context.
void set_inline_receive(SimQp& qp, std::uint32_t bytes, const ClusterWire& wire) {
  const InlineReceiveRoom room = inline_receive_room(wire.family, qp.transport, Verb::send, wire.cqe_bytes);
  if (bytes == 0 || room.place == InlineReceive::nowhere) return;
  qp.inline_place = room.place;
  qp.inline_recv = bytes;
}

// Removes completions of `qp` that were not polled, as drivers do when a QP is destroyed or reset.
void clean(SimCq& cq, const SimQp& qp) {
  std::uint64_t kept = cq.polled;
  for (std::uint64_t i = cq.polled; i < cq.written; ++i) {
    if (cq.at(i).qp != &qp) cq.at(kept++) = cq.at(i);
  }
  cq.written = kept;
}

// An XRC target has completions in the CQs of shared queues only, where they stay.
void clean_all(const SimQp& qp) {
  if (qp.send_cq != nullptr) clean(qp.send_completions(), qp);
  if (qp.recv_cq != nullptr && qp.domain == nullptr) clean(qp.recv_completions(), qp);
}

void reset(SimQp& qp) {
  qp.state = IBV_QPS_RESET;
  qp.nic->forget_work(qp);
  clean_all(qp);
  SendQueue& send = qp.send;
  send.posted = send.rung = send.arrived = send.next = send.done = send.freed = 0;
  send.posted_bytes = 0;
  RecvQueue& recv = qp.recv;
  recv.posted = recv.fetched = recv.fetching = recv.used = recv.freed = 0;
  ++qp.generation;
  qp.requester.timer_runs = false;
  if (qp.domain != nullptr) qp.srq = nullptr;
  qp.responder = ResponderState{.answers = qp.responder.answers};  // they are freed when their data arrive
  qp.results = AtomicResults{};
}

SimDoorbells& doorbells_of(SimContext& context) {
  if (context.doorbells != nullptr) return *context.doorbells;
  const Profile& profile = context.nic->profile();
  SimDoorbells& doorbells = *(context.doorbells = std::make_unique<SimDoorbells>());
  if (context.doorbell_registers > 0) doorbells.registers.total = context.doorbell_registers;
  const bool several = facts(profile.wire.family).several_doorbell_registers;
  for (std::uint32_t i = 0; i < (several ? doorbells.registers.total : 1); ++i) {
    doorbells.locks.emplace_back(profile.host, 0, context.nic->lock_times());
  }
  return doorbells;
}

// The lock of the doorbell register that the driver assigns to the QP; null if no other QP shares the register.
SpinLock* doorbell_lock_of(ibv_pd* pd, NicFamily family) {
  if (as_sim(pd).td != nullptr) return nullptr;
  SimDoorbells& doorbells = doorbells_of(as_sim(pd->context));
  if (!facts(family).several_doorbell_registers) return &doorbells.locks.front();
  const std::uint32_t number = doorbell_register_of(doorbells.registers, doorbells.qps++);
  return is_shared(doorbells.registers, number) ? &doorbells.locks[number] : nullptr;
}

// The QP of a handle.
SimQp& behind(ibv_qp* handle) {
  SimQp& qp = as_sim(handle);
  return qp.opened != nullptr ? *qp.opened : qp;
}

}  // namespace

ibv_qp* SimProvider::create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const ibv_qp_cap& cap = attr->cap;
  const std::optional<Transport> transport = transport_of(attr->qp_type);
  if (!transport) return no_object(EOPNOTSUPP);
  ibv_qp_init_attr used = *attr;
  if (facts(*transport).names_queue) {  // the other side receives, in shared queues
    if (attr->qp_type == IBV_QPT_XRC_RECV) return no_object(EINVAL);
    used.recv_cq = attr->send_cq;
    used.srq = nullptr;
    used.cap.max_recv_wr = used.cap.max_recv_sge = 0;
  }
  if (used.send_cq == nullptr || used.recv_cq == nullptr || cap.max_send_wr > kMaxQueueDepth ||
      used.cap.max_recv_wr > kMaxQueueDepth || cap.max_send_sge > kMaxSge || used.cap.max_recv_sge > kMaxSge ||
      cap.max_inline_data > nic_.profile().wire.max_inline.value) {
    return no_object(EINVAL);
  }
  const bool in_recv = facts(nic_.profile().wire.family).inline_receive == InlineReceive::in_recv;
  if (in_recv && as_sim(pd->context).inline_recv > 0 && used.srq != nullptr) return no_object(EOPNOTSUPP);
  SimQp& qp = add_qp(used, *transport, pd->context, pd);
  qp.doorbell_lock = doorbell_lock_of(pd, nic_.profile().wire.family);
  qp.signal_all = attr->sq_sig_all != 0;
  set_inline_receive(qp, as_sim(pd->context).inline_recv, nic_.profile().wire);
  size_send_queue(qp, used.cap, nic_.profile().wire.family);
  size_recv_queue(qp, used.cap);
  if (*transport == Transport::ud) qp.recv.per_descriptor = as_sim(pd->context).recvs_per_descriptor;
  ++as_sim(pd).users;
  if (qp.srq != nullptr) ++qp.shared_queue()->users;
  ++qp.send_completions().users;
  ++qp.recv_completions().users;
  return &qp;
}

SimQp& SimProvider::add_qp(const ibv_qp_init_attr& attr, Transport transport, ibv_context* context, ibv_pd* pd) {
  SimQp& qp = *qps_.emplace_back(std::make_unique<SimQp>());
  qp.context = context;
  qp.qp_context = attr.qp_context;
  qp.created_in = pd;
  qp.pd = pd == nullptr ? nullptr : owner_of(pd);
  qp.send_cq = attr.send_cq;
  qp.recv_cq = attr.recv_cq;
  qp.srq = attr.srq;
  qp.qp_type = attr.qp_type;
  qp.state = IBV_QPS_RESET;
  qp.nic = &nic_;
  qp.transport = transport;
  qp.path_mtu = static_cast<std::uint32_t>(nic_.profile().wire.mtu.value);
  qp.caps = attr.cap;
  qp.qp_num = nic_.add_qp(qp);
  return qp;
}

ibv_qp* SimProvider::create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* attr) {
  // Work on the keys of memory windows.
  constexpr std::uint64_t kKeyWork = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV;
  const std::uint64_t operations = send_operations(attr->qp_type) | (has_key_work(attr->qp_type) ? kKeyWork : 0);
  const int refusal = check_extensions(*attr, operations, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
  if (refusal != 0) return no_object(refusal);
  if (attr->qp_type == IBV_QPT_XRC_RECV) {
    return create_xrc_target(*static_cast<SimXrcd*>(attr->xrcd), attr->qp_context);
  }
  ibv_qp_init_attr plain = without_extensions(*attr);
  ibv_qp* const qp = create_qp(attr->pd, &plain);
  if (qp == nullptr) return nullptr;
  as_sim(qp).blocks_own_multicast = (create_flags(*attr) & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) != 0;
  if (requests_builder(*attr)) {
    RequestBuilder& builder = *builders_.emplace_back(std::make_unique<RequestBuilder>());
    builder.qp_base = *qp;  // a copy, for reading
    offer(builder, attr->send_ops_flags, *qp, as_sim(qp).caps, &post_send_all);
    as_sim(qp).builder = &builder;
  }
  return qp;
}

ibv_qp_ex* SimProvider::qp_to_qp_ex(ibv_qp* qp) {
  return as_sim(qp).builder;
}

// Checks that the attributes are in range, before any is changed.
bool SimProvider::acceptable(const ibv_qp_attr& attr, int mask) const {
  const Profile& profile = nic_.profile();
  const auto given = [mask](int flag) { return (mask & flag) != 0; };
  if (given(IBV_QP_PKEY_INDEX) && attr.pkey_index >= kPkeys) return false;
  if (given(IBV_QP_PORT) && (attr.port_num < 1 || attr.port_num > profile.wire.ports)) return false;
  if (given(IBV_QP_AV)) {
    const auto path = resolve(attr.ah_attr);
    if (!path || path->node == kEveryNode) return false;
  }
  if (given(IBV_QP_PATH_MTU) && (attr.path_mtu < IBV_MTU_256 || attr.path_mtu > IBV_MTU_4096 ||
                                 std::cmp_greater(mtu_bytes(attr.path_mtu), profile.wire.mtu.value))) {
    return false;
  }
  if (given(IBV_QP_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > kMaxReads) return false;
  if (given(IBV_QP_MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic > kMaxReads) return false;
  // Fields of five and three bits: InfiniBand Architecture Specification 1.3, volume 1, section 11.2.4.2.
  if (given(IBV_QP_TIMEOUT) && attr.timeout > 31) return false;
  if (given(IBV_QP_MIN_RNR_TIMER) && attr.min_rnr_timer > 31) return false;
  if (given(IBV_QP_RETRY_CNT) && attr.retry_cnt > 7) return false;
  return !given(IBV_QP_RNR_RETRY) || attr.rnr_retry <= 7;
}

int SimProvider::modify_qp(ibv_qp* verbs_qp, ibv_qp_attr* attr, int mask) {
  SimQp& qp = behind(verbs_qp);
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : qp.state;
  if ((mask & IBV_QP_CUR_STATE) != 0 && attr->cur_qp_state != qp.state) return EINVAL;
  if (!may_modify(qp.qp_type, qp.state, to, mask) || !acceptable(*attr, mask)) return EINVAL;
  if ((mask & IBV_QP_PORT) != 0) {
    qp.port = static_cast<std::uint8_t>(attr->port_num - 1);
    qp.attributes.port_num = attr->port_num;
  }
  if ((mask & IBV_QP_AV) != 0) {
    const Path path = *resolve(attr->ah_attr);  // acceptable() has checked it
    qp.peer_node = path.node;
    qp.global = path.global;
    qp.priority = priority_of(nic_.profile().wire.link_type, attr->ah_attr);
    qp.attributes.ah_attr = attr->ah_attr;
  }
  if ((mask & IBV_QP_PATH_MTU) != 0) {
    qp.path_mtu = static_cast<std::uint32_t>(mtu_bytes(attr->path_mtu));
    qp.attributes.path_mtu = attr->path_mtu;
  }
  if ((mask & IBV_QP_SQ_PSN) != 0) {
    qp.attributes.sq_psn = attr->sq_psn;
    qp.requester.sequence_to_post = qp.requester.sequence_unsent = attr->sq_psn;
    qp.requester.acknowledged = attr->sq_psn - 1;
  }
  if ((mask & IBV_QP_QKEY) != 0) qp.attributes.qkey = qp.qkey = attr->qkey;
  if ((mask & IBV_QP_DEST_QPN) != 0) qp.attributes.dest_qp_num = qp.peer_qp = attr->dest_qp_num;
  if ((mask & IBV_QP_RQ_PSN) != 0) qp.attributes.rq_psn = qp.responder.expected = attr->rq_psn;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) qp.settings.qp_access_flags = attr->qp_access_flags;
  if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) qp.settings.min_rnr_timer = attr->min_rnr_timer;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) qp.settings.max_dest_rd_atomic = attr->max_dest_rd_atomic;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) qp.settings.max_rd_atomic = attr->max_rd_atomic;
  if ((mask & IBV_QP_TIMEOUT) != 0) qp.settings.timeout = attr->timeout;
  if ((mask & IBV_QP_RETRY_CNT) != 0) qp.requester.retries_left = qp.settings.retry_cnt = attr->retry_cnt;
  if ((mask & IBV_QP_RNR_RETRY) != 0) qp.requester.rnr_retries_left = qp.settings.rnr_retry = attr->rnr_retry;
  if (to == IBV_QPS_ERR) {
    nic_.requester().completer().fail(qp);
  } else if (to == IBV_QPS_RESET) {
    reset(qp);
  }
  qp.state = to;
  verbs_qp->state = to;
  return 0;
}

int SimProvider::query_qp(ibv_qp* verbs_qp, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  const SimQp& qp = behind(verbs_qp);
  *attr = qp.attributes;
  attr->qp_state = attr->cur_qp_state = qp.state;
  attr->cap = qp.caps;
  attr->qp_access_flags = qp.settings.qp_access_flags;
  attr->max_rd_atomic = qp.settings.max_rd_atomic;
  attr->max_dest_rd_atomic = qp.settings.max_dest_rd_atomic;
  attr->timeout = qp.settings.timeout;
  attr->retry_cnt = qp.settings.retry_cnt;
  attr->rnr_retry = qp.settings.rnr_retry;
  attr->min_rnr_timer = qp.settings.min_rnr_timer;
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
  if (qp.qp_type == IBV_QPT_XRC_RECV) return close_xrc_target(qp);
  if (nic_.groups().is_attached(qp)) return EBUSY;
  destroy(qp);
  --as_sim(qp.created_in).users;
  if (qp.srq != nullptr) --qp.shared_queue()->users;
  --qp.send_completions().users;
  --qp.recv_completions().users;
  return 0;
}

void SimProvider::destroy(SimQp& qp) {
  clean_all(qp);
  qp.state = IBV_QPS_RESET;
  forget_events(*qp.context, &qp);
  nic_.remove_qp(qp);
}

}  // namespace verbscope::sim
