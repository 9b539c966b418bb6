#include "verbs/null/provider.hpp"

#include <arpa/inet.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "verbs/ibv_codes.hpp"
#include "verbs/null/device.hpp"
#include "verbs/port_speed.hpp"
#include "verbs/qp_rules.hpp"
#include "wire/packet.hpp"
#include "wire/verb.hpp"

namespace verbscope {

struct NullContext : ibv_context {
  int children = 0;
};

struct NullPd : ibv_pd {
  int children = 0;
};

// Owns objects and finds them by the pointer that the program holds.
template <class Base, class T>
using NullTable = std::unordered_map<Base*, std::unique_ptr<T>>;

namespace {

constexpr const char* kName = "null0";
constexpr const char* kGid = "fe80::1";
constexpr BytesPerSecond kPortRate{12.5e9};  // stated for programs that pace themselves; nothing takes time

template <class Base, class T>
Base* keep(NullTable<Base, T>& table, std::unique_ptr<T> object) {
  Base* const pointer = object.get();
  table.emplace(pointer, std::move(object));
  return pointer;
}

// Completions of a QP that is reset or destroyed leave its CQs (rdma-core 44 providers/mlx5/cq.c, mlx5_cq_clean).
void empty_queues(NullQp& qp) {
  for (ibv_cq* const used : {qp.send_cq, qp.recv_cq}) {
    NullCq& cq = *static_cast<NullCq*>(used);
    const std::lock_guard guard(cq.lock);
    for (std::size_t left = cq.count; left > 0; --left) {
      const NullCompletion completion = cq.pop();
      if (completion.qp != &qp) cq.push(completion);
    }
  }
  qp.send_queue.freed = qp.send_queue.posted;
  qp.recv_queue.freed = qp.recv_queue.posted;
  qp.held.count = 0;
}

}  // namespace

struct NullProvider::State {
  NullLimits limits;
  std::mutex mutex;  // the control path; the data path has the CQs' locks
  ibv_device device{};
  std::uint32_t next_number = 1;  // the next number of a QP or a key
  NullTable<ibv_context, NullContext> contexts;
  NullTable<ibv_pd, NullPd> pds;
  NullTable<ibv_mr, ibv_mr> mrs;
  NullTable<ibv_cq, NullCq> cqs;
  NullTable<ibv_qp, NullQp> qps;
  NullTable<ibv_ah, ibv_ah> ahs;

  bool allows(const ibv_qp_cap& cap) const {
    const auto fits = [](std::uint32_t value, int limit) { return value <= static_cast<std::uint32_t>(limit); };
    return fits(cap.max_send_wr, limits.max_qp_wr) && fits(cap.max_recv_wr, limits.max_qp_wr) &&
           fits(cap.max_send_sge, limits.max_sge) && fits(cap.max_recv_sge, limits.max_sge) &&
           fits(cap.max_inline_data, limits.max_inline);
  }
};

NullProvider::NullProvider(const NullLimits& limits) : state_(std::make_unique<State>()) {
  state_->limits = limits;
  state_->device.node_type = IBV_NODE_CA;
  state_->device.transport_type = IBV_TRANSPORT_IB;
  std::strncpy(state_->device.name, kName, sizeof state_->device.name - 1);
}

NullProvider::~NullProvider() = default;

std::vector<std::string> NullProvider::device_names() {
  return {kName};
}

ibv_context* NullProvider::open(const std::string& name) {
  if (name != kName) return no_object(ENODEV);
  auto context = std::make_unique<NullContext>();
  context->device = &state_->device;
  context->cmd_fd = -1;
  context->async_fd = -1;
  context->num_comp_vectors = 1;
  context->ops.post_send = null_post_send;
  context->ops.post_recv = null_post_recv;
  context->ops.poll_cq = null_poll_cq;
  context->ops.req_notify_cq = null_req_notify_cq;
  const std::lock_guard guard(state_->mutex);
  return keep(state_->contexts, std::move(context));
}

int NullProvider::close(ibv_context* context) {
  const std::lock_guard guard(state_->mutex);
  if (static_cast<NullContext*>(context)->children > 0) return EBUSY;
  state_->contexts.erase(context);
  return 0;
}

int NullProvider::set_inline_recv(ibv_context*, Transport, Verb, std::uint32_t bytes) {
  return bytes == 0 ? 0 : EOPNOTSUPP;
}

int NullProvider::set_doorbell_registers(const std::string&, std::uint32_t total) {
  return total == 0 ? 0 : EOPNOTSUPP;
}

int NullProvider::query_device(ibv_context*, ibv_device_attr* attr) {
  const NullLimits& limits = state_->limits;
  *attr = {};
  attr->max_mr_size = ~std::uint64_t{0};
  attr->page_size_cap = 4096;
  attr->max_qp = limits.max_qp;
  attr->max_qp_wr = limits.max_qp_wr;
  attr->max_sge = limits.max_sge;
  attr->max_cq = limits.max_qp;
  attr->max_cqe = limits.max_cqe;
  attr->max_mr = limits.max_qp;
  attr->max_pd = limits.max_qp;
  attr->max_ah = limits.max_qp;
  attr->atomic_cap = IBV_ATOMIC_HCA;
  attr->max_qp_rd_atom = kMaxReads;
  attr->max_qp_init_rd_atom = kMaxReads;
  attr->max_pkeys = 1;
  attr->phys_port_cnt = 1;
  return 0;
}

int NullProvider::query_port(ibv_context*, std::uint8_t port, ibv_port_attr* attr) {
  if (port != 1) return EINVAL;
  *attr = {};
  attr->state = IBV_PORT_ACTIVE;
  attr->max_mtu = IBV_MTU_4096;
  attr->active_mtu = IBV_MTU_4096;
  attr->gid_tbl_len = 1;
  attr->max_msg_sz = kLongestMessage;
  attr->pkey_tbl_len = 1;
  attr->lid = 1;
  attr->link_layer = IBV_LINK_LAYER_INFINIBAND;
  set_port_rate(*attr, kPortRate);
  return 0;
}

int NullProvider::query_gid(ibv_context*, std::uint8_t port, std::uint32_t index, ibv_gid_entry* entry) {
  if (port != 1 || index != 0) return EINVAL;
  *entry = {};
  inet_pton(AF_INET6, kGid, entry->gid.raw);
  entry->port_num = port;
  entry->gid_type = IBV_GID_TYPE_IB;
  return 0;
}

ibv_pd* NullProvider::alloc_pd(ibv_context* context) {
  auto pd = std::make_unique<NullPd>();
  pd->context = context;
  const std::lock_guard guard(state_->mutex);
  ++static_cast<NullContext*>(context)->children;
  return keep(state_->pds, std::move(pd));
}

int NullProvider::dealloc_pd(ibv_pd* pd) {
  const std::lock_guard guard(state_->mutex);
  if (static_cast<NullPd*>(pd)->children > 0) return EBUSY;
  --static_cast<NullContext*>(pd->context)->children;
  state_->pds.erase(pd);
  return 0;
}

ibv_td* NullProvider::alloc_td(ibv_context*) {
  return no_object(EOPNOTSUPP);
}

int NullProvider::dealloc_td(ibv_td*) {
  return EINVAL;
}

ibv_pd* NullProvider::alloc_parent_domain(ibv_pd*, ibv_td*) {
  return no_object(EOPNOTSUPP);
}

ibv_mr* NullProvider::reg_mr(ibv_pd* pd, void* address, std::size_t length, int) {
  if (address == nullptr || length == 0) return no_object(EINVAL);
  auto mr = std::make_unique<ibv_mr>();
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  const std::lock_guard guard(state_->mutex);
  mr->lkey = mr->rkey = state_->next_number++;
  ++static_cast<NullPd*>(pd)->children;
  return keep(state_->mrs, std::move(mr));
}

int NullProvider::dereg_mr(ibv_mr* mr) {
  const std::lock_guard guard(state_->mutex);
  --static_cast<NullPd*>(mr->pd)->children;
  state_->mrs.erase(mr);
  return 0;
}

// There is nothing to wait for: every request is complete when its post returns.
ibv_comp_channel* NullProvider::create_comp_channel(ibv_context*) {
  return no_object(EOPNOTSUPP);
}

int NullProvider::destroy_comp_channel(ibv_comp_channel*) {
  return EINVAL;
}

ibv_cq* NullProvider::create_cq(ibv_context* context, int entries, ibv_comp_channel* channel, int vector) {
  if (channel != nullptr || vector != 0 || entries < 1 || entries > state_->limits.max_cqe) return no_object(EINVAL);
  auto cq = std::make_unique<NullCq>();
  cq->context = context;
  cq->cqe = entries;
  cq->ring.resize(static_cast<std::size_t>(entries));
  const std::lock_guard guard(state_->mutex);
  ++static_cast<NullContext*>(context)->children;
  return keep(state_->cqs, std::move(cq));
}

int NullProvider::destroy_cq(ibv_cq* cq) {
  const std::lock_guard guard(state_->mutex);
  if (static_cast<NullCq*>(cq)->users > 0) return EBUSY;
  --static_cast<NullContext*>(cq->context)->children;
  state_->cqs.erase(cq);
  return 0;
}

ibv_srq* NullProvider::create_srq(ibv_pd*, ibv_srq_init_attr*) {
  return no_object(EOPNOTSUPP);
}

int NullProvider::query_srq(ibv_srq*, ibv_srq_attr*) {
  return EINVAL;
}

int NullProvider::destroy_srq(ibv_srq*) {
  return EINVAL;
}

ibv_qp* NullProvider::create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const std::optional<Transport> transport = transport_of(attr->qp_type);
  if (!transport || facts(*transport).names_queue) return no_object(EOPNOTSUPP);
  if (attr->send_cq == nullptr || attr->recv_cq == nullptr || attr->srq != nullptr) return no_object(EINVAL);
  if (!state_->allows(attr->cap)) return no_object(EINVAL);
  auto qp = std::make_unique<NullQp>();
  qp->context = pd->context;
  qp->qp_context = attr->qp_context;
  qp->pd = pd;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->qp_type = attr->qp_type;
  qp->transport = *transport;
  qp->state = IBV_QPS_RESET;
  qp->send_queue = {attr->cap.max_send_wr, attr->cap.max_send_sge};
  qp->recv_queue = {attr->cap.max_recv_wr, attr->cap.max_recv_sge};
  qp->max_inline = attr->cap.max_inline_data;
  qp->signal_all = attr->sq_sig_all != 0;
  const std::lock_guard guard(state_->mutex);
  if (std::cmp_greater_equal(state_->qps.size(), state_->limits.max_qp)) return no_object(ENOMEM);
  qp->qp_num = state_->next_number++;
  ++static_cast<NullPd*>(pd)->children;
  ++static_cast<NullCq*>(qp->send_cq)->users;
  ++static_cast<NullCq*>(qp->recv_cq)->users;
  return keep(state_->qps, std::move(qp));
}

ibv_qp* NullProvider::create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* attr) {
  const int error = check_extensions(*attr, send_operations(attr->qp_type), 0);
  if (error != 0) return no_object(error);
  ibv_qp_init_attr plain = without_extensions(*attr);
  ibv_qp* const qp = create_qp(attr->pd, &plain);
  if (qp != nullptr && requests_builder(*attr)) {
    NullQp& made = *static_cast<NullQp*>(qp);
    made.builder = make_null_builder(made, attr->send_ops_flags);
  }
  return qp;
}

ibv_qp_ex* NullProvider::qp_to_qp_ex(ibv_qp* qp) {
  return static_cast<NullQp*>(qp)->builder.get();
}

int NullProvider::modify_qp(ibv_qp* base, ibv_qp_attr* attr, int mask) {
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attr->qp_state : base->state;
  if (!may_modify(base->qp_type, base->state, to, mask)) return EINVAL;
  base->state = to;
  if (to == IBV_QPS_RESET) empty_queues(*static_cast<NullQp*>(base));
  return 0;
}

int NullProvider::query_qp(ibv_qp* base, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  const NullQp& qp = *static_cast<NullQp*>(base);
  *attr = {};
  *init = {};
  attr->qp_state = attr->cur_qp_state = qp.state;
  attr->cap = {qp.send_queue.depth, qp.recv_queue.depth, qp.send_queue.max_sge, qp.recv_queue.max_sge, qp.max_inline};
  init->cap = attr->cap;
  init->qp_type = qp.qp_type;
  init->send_cq = qp.send_cq;
  init->recv_cq = qp.recv_cq;
  init->sq_sig_all = qp.signal_all ? 1 : 0;
  return 0;
}

int NullProvider::destroy_qp(ibv_qp* base) {
  NullQp& qp = *static_cast<NullQp*>(base);
  const std::lock_guard guard(state_->mutex);
  empty_queues(qp);
  for (ibv_cq* const used : {qp.send_cq, qp.recv_cq}) --static_cast<NullCq*>(used)->users;
  --static_cast<NullPd*>(qp.pd)->children;
  state_->qps.erase(base);
  return 0;
}

ibv_ah* NullProvider::create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (attr->port_num != 1) return no_object(EINVAL);
  auto ah = std::make_unique<ibv_ah>();
  ah->context = pd->context;
  ah->pd = pd;
  const std::lock_guard guard(state_->mutex);
  ++static_cast<NullPd*>(pd)->children;
  return keep(state_->ahs, std::move(ah));
}

int NullProvider::destroy_ah(ibv_ah* ah) {
  const std::lock_guard guard(state_->mutex);
  --static_cast<NullPd*>(ah->pd)->children;
  state_->ahs.erase(ah);
  return 0;
}

}  // namespace verbscope
