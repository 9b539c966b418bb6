// The allowed state transitions of a QP and their attributes, for providers that check them themselves.
#pragma once

#include <infiniband/verbs.h>

#include "wire/transport.hpp"

namespace verbscope {

// True if ibv_modify_qp with `mask` may move a QP of `transport` from `from` to `to`, for the states RESET, INIT, RTR,
// RTS and ERR. As the kernel decides (drivers/infiniband/core/verbs.c, ib_modify_qp_is_ok and its table), except RESET
// to ERR, which the kernel refuses and IBTA vol. 1, 10.3.1 allows.
bool may_modify(Transport transport, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace verbscope
