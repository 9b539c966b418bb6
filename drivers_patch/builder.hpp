// Counts requests that are posted by the ibv_wr_* interface, from wr_start to wr_complete.
#pragma once

#include <infiniband/verbs.h>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// Replaces the provider's calls by counting calls and stores the provider's in `calls`.
void wrap_builder(ibv_qp_ex& extended, BuilderCalls& calls);

}  // namespace verbscope::driver
