// --verify for the ibv_wr_* interface: wraps the provider's calls and checks the WQEs of a batch before wr_complete,
// while the provider still locks the queue.
#pragma once

#include <infiniband/verbs.h>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// Replaces the provider's calls by calls that check WQEs. Call it before wrap_builder(), which then counts and calls
// these. `calls` belongs to the QP's builder.
void verify_builder(ibv_qp_ex& extended, BuilderCalls& calls);

}  // namespace verbscope::driver
