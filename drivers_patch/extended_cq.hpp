// Counts what is polled by the interface of extended completion queues.
#pragma once

#include <infiniband/verbs.h>

#include "drivers_patch/layout.hpp"

namespace verbscope::driver {

// Puts counting calls in the place of the provider's, which `calls` keeps.
void wrap_polling(ibv_cq_ex& cq, PollCalls& calls);

}  // namespace verbscope::driver
