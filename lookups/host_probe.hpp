// What this host's memory does, measured before a benchmark that depends on it.
#pragma once

#include "common/units.hpp"
#include "machine/memory.hpp"
#include "pcie_model/memory_walk.hpp"

namespace verbscope::lookups {

// Measures on the calling thread's core, over a chain in memory of about `bytes` (rounded down to a power of two, at
// least 4 KB) on such pages: the latency of one access that depends on the one before, and the rate of independent ones
// by the quickest of several ways; over 4 KB, which the first cache holds, what an access costs by itself, in a group
// and in turns of `batch` look-ups. Each is the quickest of several measurements: what else runs on the host only adds.
// `window` is taken over.
HostMemory probe_host(Bytes bytes, PageSize pages, std::size_t batch, double window);

}  // namespace verbscope::lookups
