// The phases of a measured run. One word is shared by the conductor, which turns it, and the benchmark threads, which
// read it once a batch (relaxed: each thread notes its own clock when it sees the change).
#pragma once

#include <atomic>
#include <cstdint>

namespace verbscope {

enum class Phase : std::uint32_t { warmup, measure, stop };
using PhaseWord = std::atomic<Phase>;

}  // namespace verbscope
