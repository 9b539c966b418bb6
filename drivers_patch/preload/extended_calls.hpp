// Calls of the control path that programs make through the table of a context, not through symbols of libibverbs.
#pragma once

#include <infiniband/verbs.h>

namespace verbscope::driver {

// Wraps the creation of QPs, completion queues and shared receive queues, where the provider implements it.
void wrap_extended_calls(ibv_context& context);

}  // namespace verbscope::driver
