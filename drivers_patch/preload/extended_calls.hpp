// The calls of the control path that programs make past the symbols of libibverbs, through the table of a context.
#pragma once

#include <infiniband/verbs.h>

namespace verbscope::driver {

// Wraps what makes QPs, completion queues and shared receive queues; what the provider leaves out stays out.
void wrap_extended_calls(ibv_context& context);

}  // namespace verbscope::driver
