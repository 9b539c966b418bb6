// The QP state machine: InfiniBand Architecture Specification 1.3, volume 1, section 10.3.1, and the attribute table of
// the manual page ibv_modify_qp(3).
#pragma once

#include <infiniband/verbs.h>

namespace verbscope::sim {

// Whether modify_qp may take a QP of `type` from `from` to `to` with these attributes: the transition exists and the
// attributes that it needs are in `mask`.
bool transition_allowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace verbscope::sim
