// Rules for providers that check calls themselves: how a call fails, state transitions of QPs, and the ibv_wr_*
// interface.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "verbs/ibv_codes.hpp"
#include "wire/transport.hpp"

namespace verbscope {

// The result of a failed call that returns an object, as in libibverbs: null and errno.
inline std::nullptr_t no_object(int error) {
  errno = error;
  return nullptr;
}

// True if ibv_modify_qp with `mask` may move a QP of `type` from `from` to `to`, for the states RESET, INIT, RTR,
// RTS and ERR. As the kernel decides (drivers/infiniband/core/verbs.c, ib_modify_qp_is_ok and its table), except RESET
// to ERR, which the kernel refuses and IBTA vol. 1, 10.3.1 allows.
bool may_modify(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

// The send operations of a QP type, as a mask of IBV_QP_EX_WITH_*. 0 for unsupported types, and if it only receives.
constexpr std::uint64_t send_operations(ibv_qp_type type) {
  const std::optional<Transport> transport = transport_of(type);
  std::uint64_t operations = 0;
  for (const VerbCodes& codes : kVerbCodes) {
    const bool sends = transport && type != IBV_QPT_XRC_RECV;
    if (sends && facts(*transport).verbs.has(codes.value)) operations |= codes.builder;
  }
  return operations;
}

constexpr bool requests_builder(const ibv_qp_init_attr_ex& attr) {
  return (attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
}

// The flags of ibv_create_qp_ex, IBV_QP_CREATE_*.
constexpr std::uint32_t create_flags(const ibv_qp_init_attr_ex& attr) {
  return (attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 ? attr.create_flags : 0;
}

// Checks what ibv_create_qp_ex has beyond ibv_create_qp. `operations`: the send operations of the QP's transport, as
// IBV_QP_EX_WITH_*; `flags`: the create_flags that the device supports. Returns 0, EINVAL (no PD, or for
// IBV_QPT_XRC_RECV no XRC domain) or EOPNOTSUPP (another attribute, operation or flag).
constexpr int check_extensions(const ibv_qp_init_attr_ex& attr, std::uint64_t operations, std::uint32_t flags) {
  const std::uint32_t needed = attr.qp_type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD;
  const std::uint32_t known = needed | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  if ((attr.comp_mask & needed) == 0) return EINVAL;
  if ((attr.comp_mask & ~known) != 0) return EOPNOTSUPP;
  if ((create_flags(attr) & ~flags) != 0) return EOPNOTSUPP;
  return requests_builder(attr) && (attr.send_ops_flags & ~operations) != 0 ? EOPNOTSUPP : 0;
}

inline ibv_qp_init_attr without_extensions(const ibv_qp_init_attr_ex& attr) {
  return {attr.qp_context, attr.send_cq, attr.recv_cq, attr.srq, attr.cap, attr.qp_type, attr.sq_sig_all};
}

}  // namespace verbscope
