// When the preloaded library begins to count, and what of the environment it reads: VERBSCOPE_TRACE_DIR, the folder for
// the files of processes, and VERBSCOPE_TRACE_NIC, the family of adapters that costs are reckoned for (by default the
// device's own). Without the first it counts nothing. With VERBSCOPE_TRACE_VERIFY it verifies WQEs as well.
#pragma once

#include <infiniband/verbs.h>

namespace verbscope::driver {

// A context that the program has: begins to count with the first one of the process, and wraps it.
void see_context(ibv_context& context);

}  // namespace verbscope::driver
