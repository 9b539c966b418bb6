#include "verbs/request_builder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbscope {
namespace {

RequestBuilder& builder_of(ibv_qp_ex* qp) {
  return *static_cast<RequestBuilder*>(qp);
}

// Keeps the first error of the post for wr_complete.
void refuse(RequestBuilder& builder, int error) {
  if (builder.error == 0) builder.error = error;
}

// Adds a work request with the program's current id and flags. Returns null if the post has failed already.
ibv_send_wr* add(ibv_qp_ex* qp, ibv_wr_opcode opcode) {
  RequestBuilder& builder = builder_of(qp);
  if (builder.requests == builder.depth) refuse(builder, ENOMEM);
  if (builder.error != 0) return nullptr;
  ibv_send_wr& wr = builder.list[builder.requests++];
  wr = ibv_send_wr{};
  wr.wr_id = qp->wr_id;
  wr.opcode = opcode;
  wr.send_flags = qp->wr_flags;
  return &wr;
}

void add_rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t address, __be32 immediate) {
  ibv_send_wr* const wr = add(qp, opcode);
  if (wr == nullptr) return;
  wr->wr.rdma.rkey = rkey;
  wr->wr.rdma.remote_addr = address;
  wr->imm_data = immediate;
}

void add_atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t address,
                std::uint64_t compare_add, std::uint64_t swap) {
  ibv_send_wr* const wr = add(qp, opcode);
  if (wr == nullptr) return;
  wr->wr.atomic = {.remote_addr = address, .compare_add = compare_add, .swap = swap, .rkey = rkey};
}

void wr_send(ibv_qp_ex* qp) {
  add(qp, IBV_WR_SEND);
}

void wr_send_imm(ibv_qp_ex* qp, __be32 immediate) {
  ibv_send_wr* const wr = add(qp, IBV_WR_SEND_WITH_IMM);
  if (wr != nullptr) wr->imm_data = immediate;
}

void wr_rdma_write(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
  add_rdma(qp, IBV_WR_RDMA_WRITE, rkey, address, 0);
}

void wr_rdma_write_imm(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, __be32 immediate) {
  add_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address, immediate);
}

void wr_rdma_read(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address) {
  add_rdma(qp, IBV_WR_RDMA_READ, rkey, address, 0);
}

void wr_atomic_cmp_swp(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                       std::uint64_t swap) {
  add_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address, compare, swap);
}

void wr_atomic_fetch_add(ibv_qp_ex* qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t addend) {
  add_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address, addend, 0);
}

void wr_send_inv(ibv_qp_ex* qp, std::uint32_t key) {
  ibv_send_wr* const wr = add(qp, IBV_WR_SEND_WITH_INV);
  if (wr != nullptr) wr->invalidate_rkey = key;
}

void wr_local_inv(ibv_qp_ex* qp, std::uint32_t key) {
  ibv_send_wr* const wr = add(qp, IBV_WR_LOCAL_INV);
  if (wr != nullptr) wr->invalidate_rkey = key;
}

void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, std::uint32_t key, const ibv_mw_bind_info* range) {
  ibv_send_wr* const wr = add(qp, IBV_WR_BIND_MW);
  if (wr != nullptr) wr->bind_mw = {.mw = mw, .rkey = key, .bind_info = *range};
}

// The latest request, to which the setters apply; null if there is none.
ibv_send_wr* latest(RequestBuilder& builder) {
  if (builder.requests == 0) refuse(builder, EINVAL);
  return builder.error == 0 ? &builder.list[builder.requests - 1] : nullptr;
}

ibv_sge* sges_of_latest(RequestBuilder& builder) {
  return &builder.sges[(builder.requests - 1) * builder.max_sge];
}

void wr_set_sge_list(ibv_qp_ex* qp, std::size_t count, const ibv_sge* list) {
  RequestBuilder& builder = builder_of(qp);
  if (count > builder.max_sge) refuse(builder, EINVAL);
  ibv_send_wr* const wr = latest(builder);
  if (wr == nullptr) return;
  wr->sg_list = sges_of_latest(builder);
  wr->num_sge = static_cast<int>(count);
  std::copy_n(list, count, wr->sg_list);
}

void wr_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  const ibv_sge sge{.addr = address, .length = length, .lkey = lkey};
  wr_set_sge_list(qp, 1, &sge);
}

void wr_set_inline_data_list(ibv_qp_ex* qp, std::size_t count, const ibv_data_buf* buffers) {
  RequestBuilder& builder = builder_of(qp);
  const std::size_t room = builder.max_inline;
  std::size_t length = 0;
  for (std::size_t i = 0; i < count; ++i) length += buffers[i].length;
  if (length > room) refuse(builder, ENOMEM);
  ibv_send_wr* const wr = latest(builder);
  if (wr == nullptr) return;
  std::byte* const copy = builder.inline_data.get() + (builder.requests - 1) * room;
  std::byte* out = copy;
  for (std::size_t i = 0; i < count; ++i) {
    if (buffers[i].length > 0) std::memcpy(out, buffers[i].addr, buffers[i].length);
    out += buffers[i].length;
  }
  wr->sg_list = sges_of_latest(builder);
  wr->num_sge = 1;
  *wr->sg_list = {
      .addr = reinterpret_cast<std::uint64_t>(copy), .length = static_cast<std::uint32_t>(length), .lkey = 0};
  wr->send_flags |= IBV_SEND_INLINE;
}

void wr_set_inline_data(ibv_qp_ex* qp, void* address, std::size_t length) {
  const ibv_data_buf buffer{.addr = address, .length = length};
  wr_set_inline_data_list(qp, 1, &buffer);
}

void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, std::uint32_t remote_qpn, std::uint32_t remote_qkey) {
  ibv_send_wr* const wr = latest(builder_of(qp));
  if (wr != nullptr) wr->wr.ud = {.ah = ah, .remote_qpn = remote_qpn, .remote_qkey = remote_qkey};
}

void wr_set_xrc_srqn(ibv_qp_ex* qp, std::uint32_t number) {
  ibv_send_wr* const wr = latest(builder_of(qp));
  if (wr != nullptr) wr->qp_type.xrc.remote_srqn = number;
}

void wr_start(ibv_qp_ex* qp) {
  builder_of(qp).error = 0;
  builder_of(qp).requests = 0;
}

int wr_complete(ibv_qp_ex* qp) {
  RequestBuilder& builder = builder_of(qp);
  if (builder.error != 0 || builder.requests == 0) return builder.error;
  for (std::size_t i = 0; i + 1 < builder.requests; ++i) builder.list[i].next = &builder.list[i + 1];
  return builder.post_all(builder.target, builder.list.get());
}

void wr_abort(ibv_qp_ex*) {}  // the next wr_start discards the requests

}  // namespace

void offer(RequestBuilder& builder, std::uint64_t operations, ibv_qp& target, const ibv_qp_cap& cap,
           RequestBuilder::PostAll post_all) {
  builder.target = &target;
  builder.post_all = post_all;
  builder.depth = std::max(cap.max_send_wr, 1u);
  builder.max_sge = std::max(cap.max_send_sge, 1u);
  builder.max_inline = cap.max_inline_data;
  builder.list = std::make_unique<ibv_send_wr[]>(builder.depth);
  builder.sges = std::make_unique<ibv_sge[]>(builder.depth * builder.max_sge);
  builder.inline_data = std::make_unique<std::byte[]>(builder.depth * builder.max_inline);
  builder.wr_send = &wr_send;
  builder.wr_send_imm = &wr_send_imm;
  builder.wr_send_inv = &wr_send_inv;
  builder.wr_local_inv = &wr_local_inv;
  builder.wr_bind_mw = &wr_bind_mw;
  builder.wr_rdma_write = &wr_rdma_write;
  builder.wr_rdma_write_imm = &wr_rdma_write_imm;
  builder.wr_rdma_read = &wr_rdma_read;
  builder.wr_atomic_cmp_swp = &wr_atomic_cmp_swp;
  builder.wr_atomic_fetch_add = &wr_atomic_fetch_add;
  builder.wr_set_ud_addr = &wr_set_ud_addr;
  builder.wr_set_xrc_srqn = &wr_set_xrc_srqn;
  builder.wr_set_sge = &wr_set_sge;
  builder.wr_set_sge_list = &wr_set_sge_list;
  builder.wr_set_inline_data = &wr_set_inline_data;
  builder.wr_set_inline_data_list = &wr_set_inline_data_list;
  builder.wr_start = &wr_start;
  builder.wr_complete = &wr_complete;
  builder.wr_abort = &wr_abort;
  remove_other_operations(builder, operations, target.qp_type);
}

void remove_other_operations(ibv_qp_ex& qp, std::uint64_t operations, ibv_qp_type type) {
  const auto keep = [operations](std::uint64_t operation, auto& function) {
    if ((operations & operation) == 0) function = nullptr;
  };
  keep(IBV_QP_EX_WITH_SEND, qp.wr_send);
  keep(IBV_QP_EX_WITH_SEND_WITH_IMM, qp.wr_send_imm);
  keep(IBV_QP_EX_WITH_SEND_WITH_INV, qp.wr_send_inv);
  keep(IBV_QP_EX_WITH_LOCAL_INV, qp.wr_local_inv);
  keep(IBV_QP_EX_WITH_BIND_MW, qp.wr_bind_mw);
  keep(IBV_QP_EX_WITH_RDMA_WRITE, qp.wr_rdma_write);
  keep(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, qp.wr_rdma_write_imm);
  keep(IBV_QP_EX_WITH_RDMA_READ, qp.wr_rdma_read);
  keep(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, qp.wr_atomic_cmp_swp);
  keep(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, qp.wr_atomic_fetch_add);
  if (type != IBV_QPT_UD) qp.wr_set_ud_addr = nullptr;
  if (type != IBV_QPT_XRC_SEND) qp.wr_set_xrc_srqn = nullptr;
}

}  // namespace verbscope
