// Counts what is posted by the ibv_wr_* interface, from wr_start to wr_complete.
#pragma once

#include <infiniband/verbs.h>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// Puts counting calls in the place of the provider's, which `calls` keeps.
void wrap_builder(ibv_qp_ex& extended, BuilderCalls& calls);

}  // namespace verbscope::driver
