// Counts polls by the interface of extended completion queues.
#pragma once

#include <infiniband/verbs.h>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// Replaces the provider's calls by counting calls and stores the provider's in `calls`.
void wrap_polling(ibv_cq_ex& cq, PollCalls& calls);

}  // namespace verbscope::driver
