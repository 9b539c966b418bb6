// Wraps the calls of a builder (ibv_qp_ex) that begin a request. Shared by the counting and the verifying wrappers.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>

#include "drivers_patch/process.hpp"

namespace verbscope::driver {

// ibv_qp_ex of older provider releases ends here; the memory after it may be something else.
inline constexpr std::size_t kBuilderBytes = offsetof(ibv_qp_ex, wr_atomic_write);

// `Begins<member, opcode>::call` replaces `member`, which begins a request of `opcode`.
template <template <auto member, ibv_wr_opcode opcode> class Begins>
void wrap_beginnings(ibv_qp_ex& qp) {
  const auto wrap = [&qp]<auto member, ibv_wr_opcode opcode>() {
    wrap_call(qp.*member, &Begins<member, opcode>::call);
  };
  wrap.template operator()<&ibv_qp_ex::wr_atomic_cmp_swp, IBV_WR_ATOMIC_CMP_AND_SWP>();
  wrap.template operator()<&ibv_qp_ex::wr_atomic_fetch_add, IBV_WR_ATOMIC_FETCH_AND_ADD>();
  wrap.template operator()<&ibv_qp_ex::wr_bind_mw, IBV_WR_BIND_MW>();
  wrap.template operator()<&ibv_qp_ex::wr_local_inv, IBV_WR_LOCAL_INV>();
  wrap.template operator()<&ibv_qp_ex::wr_rdma_read, IBV_WR_RDMA_READ>();
  wrap.template operator()<&ibv_qp_ex::wr_rdma_write, IBV_WR_RDMA_WRITE>();
  wrap.template operator()<&ibv_qp_ex::wr_rdma_write_imm, IBV_WR_RDMA_WRITE_WITH_IMM>();
  wrap.template operator()<&ibv_qp_ex::wr_send, IBV_WR_SEND>();
  wrap.template operator()<&ibv_qp_ex::wr_send_imm, IBV_WR_SEND_WITH_IMM>();
  wrap.template operator()<&ibv_qp_ex::wr_send_inv, IBV_WR_SEND_WITH_INV>();
  wrap.template operator()<&ibv_qp_ex::wr_send_tso, IBV_WR_TSO>();
}

}  // namespace verbscope::driver
