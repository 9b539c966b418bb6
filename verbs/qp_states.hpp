// The changes of a QP's state that are allowed, and their attributes: for providers that check them themselves.
#pragma once

#include <infiniband/verbs.h>

#include "wire/transport.hpp"

namespace verbscope {

// Whether ibv_modify_qp with `mask` may take a QP of `transport` from `from` to `to`: as the kernel decides it
// (drivers/infiniband/core/verbs.c, ib_modify_qp_is_ok and its table), for the states RESET, INIT, RTR,
// RTS and ERR; but for RESET to ERR, which the kernel refuses and IBTA vol. 1, 10.3.1 allows.
bool may_modify(Transport transport, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace verbscope
