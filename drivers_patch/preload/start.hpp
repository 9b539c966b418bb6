// Starts counting in the preloaded library. Environment: VERBSCOPE_TRACE_DIR, the folder for the files of processes
// (without it nothing is counted); VERBSCOPE_TRACE_NIC, the adapter family for costs (default: the device's own);
// VERBSCOPE_TRACE_VERIFY: also verify WQEs.
#pragma once

#include <infiniband/verbs.h>

namespace verbscope::driver {

// Call with each context of the program. Starts counting with the first one of the process, and wraps each.
void ensure_attached(ibv_context& context);

}  // namespace verbscope::driver
