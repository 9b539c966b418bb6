// The null device's data path: ibv_post_*, ibv_poll_cq and the ibv_wr_* interface. It allocates nothing and throws
// nothing.
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>

#include "verbs/ibv_codes.hpp"
#include "verbs/null/device.hpp"
#include "verbs/null/provider.hpp"
#include "verbs/qp_rules.hpp"
#include "verbs/request_builder.hpp"
#include "verbs/sge_walk.hpp"
#include "wire/packet.hpp"

namespace verbscope {

namespace {

template <class Request>
std::uint64_t length_of(const Request& wr) {
  return sge_bytes({wr.sg_list, static_cast<std::size_t>(wr.num_sge)});
}

// The errno value of a device that refuses the work request, else 0. Values: rdma-core 44, providers/mlx5/qp.c.
int check_request(const NullQp& qp, const ibv_send_wr& wr) {
  const std::optional<Verb> verb = verb_of(wr.opcode);
  const TransportFacts& transport = facts(qp.transport);
  if (qp.state != IBV_QPS_RTS || !verb || !transport.verbs.has(*verb)) return EINVAL;
  if (!transport.connected && wr.wr.ud.ah == nullptr) return EINVAL;
  if (qp.send_queue.full()) return ENOMEM;
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > qp.send_queue.max_sge) return ENOMEM;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 && length_of(wr) > qp.max_inline) return ENOMEM;
  return 0;
}

int check_request(const NullQp& qp, const ibv_recv_wr& wr) {
  if (qp.state == IBV_QPS_RESET) return EINVAL;
  if (qp.recv_queue.full()) return ENOMEM;
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > qp.recv_queue.max_sge) return EINVAL;
  return 0;
}

}  // namespace

int null_post_send(ibv_qp* base, ibv_send_wr* list, ibv_send_wr** bad) {
  NullQp& qp = *static_cast<NullQp*>(base);
  NullCq& cq = *static_cast<NullCq*>(qp.send_cq);
  const std::lock_guard guard(cq.lock);
  for (ibv_send_wr* wr = list; wr != nullptr; wr = wr->next) {
    const bool signaled = qp.signal_all || (wr->send_flags & IBV_SEND_SIGNALED) != 0;
    // A device would overrun the CQ and stop. The error shows the program where.
    const int error = signaled && cq.full() ? ENOMEM : check_request(qp, *wr);
    if (error != 0) {
      *bad = wr;
      return error;
    }
    ++qp.send_queue.posted;
    if (signaled) cq.push({&qp, wr->wr_id, completion_opcode(*verb_of(wr->opcode)), 0, qp.send_queue.posted});
  }
  return 0;
}

int null_post_recv(ibv_qp* base, ibv_recv_wr* list, ibv_recv_wr** bad) {
  NullQp& qp = *static_cast<NullQp*>(base);
  NullCq& cq = *static_cast<NullCq*>(qp.recv_cq);
  const std::lock_guard guard(cq.lock);
  for (ibv_recv_wr* wr = list; wr != nullptr; wr = wr->next) {
    const int error = cq.full() ? ENOMEM : check_request(qp, *wr);
    if (error != 0) {
      *bad = wr;
      return error;
    }
    ++qp.recv_queue.posted;
    const auto bytes = static_cast<std::uint32_t>(length_of(*wr));
    if (!qp.held.ring.empty()) {
      qp.held.push({wr->wr_id, wr->sg_list->addr, bytes, qp.recv_queue.posted});
    } else {
      cq.push({&qp, wr->wr_id, IBV_WC_RECV, bytes, qp.recv_queue.posted});
    }
  }
  return 0;
}

int null_poll_cq(ibv_cq* base, int entries, ibv_wc* completions) {
  NullCq& cq = *static_cast<NullCq*>(base);
  const std::lock_guard guard(cq.lock);
  int polled = 0;
  for (; polled < entries && cq.count > 0; ++polled) {
    const NullCompletion completion = cq.pop();
    NullQueue& queue = completion.opcode == IBV_WC_RECV ? completion.qp->recv_queue : completion.qp->send_queue;
    queue.freed = completion.position;
    ibv_wc& wc = completions[polled];
    wc = ibv_wc{};
    wc.wr_id = completion.wr_id;
    wc.status = IBV_WC_SUCCESS;
    wc.opcode = completion.opcode;
    wc.byte_len = completion.byte_len;
    wc.qp_num = completion.qp->qp_num;
  }
  return polled;
}

void null_hold_recvs(ibv_qp* base) {
  NullQp& qp = *static_cast<NullQp*>(base);
  qp.held.ring.resize(qp.recv_queue.depth);
}

bool null_deliver(ibv_qp* base, std::span<const std::byte> packet) {
  NullQp& qp = *static_cast<NullQp*>(base);
  NullCq& cq = *static_cast<NullCq*>(qp.recv_cq);
  const std::lock_guard guard(cq.lock);
  const auto bytes = static_cast<std::uint32_t>(kGrh.value + packet.size());
  if (qp.held.count == 0 || cq.full() || qp.held.ring[qp.held.head].bytes < bytes) return false;
  const HeldRecv recv = qp.held.pop();
  std::memcpy(reinterpret_cast<void*>(recv.address + kGrh.value), packet.data(), packet.size());
  cq.push({&qp, recv.wr_id, IBV_WC_RECV, bytes, recv.position});
  return true;
}

int null_req_notify_cq(ibv_cq*, int) {
  return ENOSYS;
}

namespace {

// The ibv_wr_* interface: work requests are staged in the QP and enter its queue when the post is completed, all of
// them or none.

NullBuilder& as_builder(ibv_qp_ex* base) {
  return *static_cast<NullBuilder*>(base);
}

// The first error of a post is the one that wr_complete returns.
void set_error(NullBuilder& builder, int error) {
  if (builder.error == 0) builder.error = error;
}

void stage(ibv_qp_ex* base, Verb verb) {
  NullBuilder& builder = as_builder(base);
  NullQp& qp = *builder.qp;
  if (builder.requests >= qp.send_queue.depth) return set_error(builder, ENOMEM);
  ++builder.requests;
  if (qp.signal_all || (base->wr_flags & IBV_SEND_SIGNALED) != 0) {
    builder.staged[builder.completions++] = {&qp, base->wr_id, completion_opcode(verb), 0, builder.requests};
  }
}

void send(ibv_qp_ex* base) {
  stage(base, Verb::send);
}

void send_imm(ibv_qp_ex* base, __be32) {
  stage(base, Verb::send);
}

void rdma_write(ibv_qp_ex* base, std::uint32_t, std::uint64_t) {
  stage(base, Verb::write);
}

void rdma_write_imm(ibv_qp_ex* base, std::uint32_t, std::uint64_t, __be32) {
  stage(base, Verb::write);
}

void rdma_read(ibv_qp_ex* base, std::uint32_t, std::uint64_t) {
  stage(base, Verb::read);
}

void compare_swap(ibv_qp_ex* base, std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t) {
  stage(base, Verb::compare_swap);
}

void fetch_add(ibv_qp_ex* base, std::uint32_t, std::uint64_t, std::uint64_t) {
  stage(base, Verb::fetch_add);
}

void check_sges(NullBuilder& builder, std::size_t count) {
  if (count > builder.qp->send_queue.max_sge) set_error(builder, ENOMEM);
}

void check_inline(NullBuilder& builder, std::size_t length) {
  if (length > builder.qp->max_inline) set_error(builder, ENOMEM);
}

void set_sge(ibv_qp_ex* base, std::uint32_t, std::uint64_t, std::uint32_t) {
  check_sges(as_builder(base), 1);
}

void set_sge_list(ibv_qp_ex* base, std::size_t count, const ibv_sge*) {
  check_sges(as_builder(base), count);
}

void set_inline_data(ibv_qp_ex* base, void*, std::size_t length) {
  check_inline(as_builder(base), length);
}

void set_inline_data_list(ibv_qp_ex* base, std::size_t count, const ibv_data_buf* buffers) {
  std::size_t length = 0;
  for (std::size_t i = 0; i < count; ++i) length += buffers[i].length;
  check_inline(as_builder(base), length);
}

void set_ud_addr(ibv_qp_ex* base, ibv_ah* ah, std::uint32_t, std::uint32_t) {
  if (ah == nullptr) set_error(as_builder(base), EINVAL);
}

void start(ibv_qp_ex* base) {
  NullBuilder& builder = as_builder(base);
  builder.error = builder.qp->state == IBV_QPS_RTS ? 0 : EINVAL;
  builder.requests = 0;
  builder.completions = 0;
}

int complete(ibv_qp_ex* base) {
  NullBuilder& builder = as_builder(base);
  NullQp& qp = *builder.qp;
  NullCq& cq = *static_cast<NullCq*>(qp.send_cq);
  if (builder.error != 0) return builder.error;
  const std::lock_guard guard(cq.lock);
  NullQueue& queue = qp.send_queue;
  if (queue.posted + builder.requests - queue.freed > queue.depth) return ENOMEM;
  if (cq.count + builder.completions > cq.ring.size()) return ENOMEM;
  for (std::uint32_t i = 0; i < builder.completions; ++i) {
    NullCompletion& completion = builder.staged[i];
    completion.position += queue.posted;
    cq.push(completion);
  }
  queue.posted += builder.requests;
  return 0;
}

void abort(ibv_qp_ex*) {}  // the next start discards the staged requests

}  // namespace

std::unique_ptr<NullBuilder> make_null_builder(NullQp& qp, std::uint64_t operations) {
  auto builder = std::make_unique<NullBuilder>();
  builder->qp_base = qp;
  builder->qp = &qp;
  builder->staged.resize(qp.send_queue.depth);
  builder->wr_send = send;
  builder->wr_send_imm = send_imm;
  builder->wr_rdma_write = rdma_write;
  builder->wr_rdma_write_imm = rdma_write_imm;
  builder->wr_rdma_read = rdma_read;
  builder->wr_atomic_cmp_swp = compare_swap;
  builder->wr_atomic_fetch_add = fetch_add;
  builder->wr_set_ud_addr = set_ud_addr;
  builder->wr_set_sge = set_sge;
  builder->wr_set_sge_list = set_sge_list;
  builder->wr_set_inline_data = set_inline_data;
  builder->wr_set_inline_data_list = set_inline_data_list;
  builder->wr_start = start;
  builder->wr_complete = complete;
  builder->wr_abort = abort;
  remove_other_operations(*builder, operations, qp.qp_type);
  return builder;
}

}  // namespace verbscope
