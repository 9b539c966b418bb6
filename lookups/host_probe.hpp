// Measures this host's memory before a benchmark whose model depends on it.
#pragma once

#include "common/units.hpp"
#include "machine/memory.hpp"
#include "pcie_model/memory_walk.hpp"

namespace verbscope::lookups {

// Measures on the calling thread's core. Over a chain of about `bytes` (rounded down to a power of two, at least 4 KB)
// on the given pages: the latency of dependent accesses, and the time per independent access in the fastest of several
// ways. Over a 4 KB chain, which fits into the first-level cache: the cost of an access alone, in a group, and in turns
// of `batch` look-ups. Each is the minimum of several measurements, because other load on the host only adds time.
// `window` is copied to the result.
HostMemory probe_host(Bytes bytes, PageSize pages, std::size_t batch, double window);

}  // namespace verbscope::lookups
