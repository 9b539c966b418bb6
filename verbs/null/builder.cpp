// The ibv_wr_* interface of the null device: work requests are staged in the QP and take their place in its queue when
// the post is completed, all of them or none. What is called through it allocates nothing and throws nothing.
#include <cerrno>
#include <mutex>

#include "verbs/extended_qp.hpp"
#include "verbs/null/device.hpp"

namespace verbscope {

namespace {

NullBuilder& as_builder(ibv_qp_ex* base) {
  return *static_cast<NullBuilder*>(base);
}

// The first error of a post is the one that wr_complete returns.
void refuse(NullBuilder& builder, int error) {
  if (builder.error == 0) builder.error = error;
}

void stage(ibv_qp_ex* base, Verb verb) {
  NullBuilder& builder = as_builder(base);
  NullQp& qp = *builder.qp;
  if (builder.requests >= qp.send_queue.depth) return refuse(builder, ENOMEM);
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
  if (count > builder.qp->send_queue.max_sge) refuse(builder, ENOMEM);
}

void check_inline(NullBuilder& builder, std::size_t length) {
  if (length > builder.qp->max_inline) refuse(builder, ENOMEM);
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
  if (ah == nullptr) refuse(as_builder(base), EINVAL);
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

void abort(ibv_qp_ex*) {}  // the next start forgets what was staged

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
  keep_operations(*builder, operations, qp.transport);
  return builder;
}

}  // namespace verbscope
