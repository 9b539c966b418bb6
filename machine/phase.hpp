// The phases of a measured run. One word is shared by the thread that sets the phases and the benchmark threads, which
// read it once per batch (relaxed: each thread records its own clock when it sees a change).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace verbscope {

// A measurement interval begins at `measure`, is half over at `halved`, and ends at `closed`, while the traffic
// continues. If the rate was not steady, `measure` begins another one. At `stop` the traffic ends.
enum class Phase : std::uint32_t { warmup, measure, halved, closed, stop };
using PhaseWord = std::atomic<Phase>;

// Names of the phases, used in messages between machines.
inline constexpr std::array kPhaseNames = {"warmup", "measure", "halved", "closed", "stop"};
constexpr const char* to_string(Phase phase) {
  return kPhaseNames[static_cast<std::size_t>(phase)];
}

constexpr bool in_interval(Phase phase) {
  return phase == Phase::measure || phase == Phase::halved;
}

}  // namespace verbscope
