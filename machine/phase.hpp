// The phases of a measured run. One word is shared by the conductor, which turns it, and the benchmark threads, which
// read it once a batch (relaxed: each thread notes its own clock when it sees the change).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace verbscope {

// A window begins with the turn to `measure`, is half over at that to `halved`, and ends at that to `closed`, while the
// traffic goes on: where the rate was not steady, `measure` begins another one. At `stop` the traffic ends.
enum class Phase : std::uint32_t { warmup, measure, halved, closed, stop };
using PhaseWord = std::atomic<Phase>;

// A phase as machines tell each other of it.
inline constexpr std::array kPhaseNames = {"warmup", "measure", "halved", "closed", "stop"};
constexpr const char* to_string(Phase phase) {
  return kPhaseNames[static_cast<std::size_t>(phase)];
}

constexpr bool in_window(Phase phase) {
  return phase == Phase::measure || phase == Phase::halved;
}

}  // namespace verbscope
