// With --verify: the calls that the counted ibv_wr_* interface goes on to, which look at the WQEs of a batch before it
// is completed, while the provider keeps others away from the queue.
#pragma once

#include <infiniband/verbs.h>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// Puts looking calls in the place of the provider's, before they are counted. `calls` is that of the QP's builder.
void verify_builder(ibv_qp_ex& extended, BuilderCalls& calls);

}  // namespace verbscope::driver
