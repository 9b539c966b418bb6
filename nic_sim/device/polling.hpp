// Extended CQs of the simulated device (ibv_create_cq_ex), and the clock of its completions. data_path.hpp has poll_cq.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>

#include "nic_sim/nic/nic.hpp"
#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

// The HCA's clock counts nanoseconds of virtual time, as ConnectX-6 Dx in its real-time mode counts those of the day.
inline constexpr std::uint64_t kHcaClockKhz = 1'000'000;
inline std::uint64_t hca_clock(Picos time) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<Nanos>(time).count());
}

// The time of the running thread; outside of threads, of the engine.
inline Picos time_of(Nic& nic) {
  const SimThread* const thread = nic.running_thread();
  return thread != nullptr ? thread->clock() : nic.engine().now();
}

// The fields of completions that an extended CQ can offer, as a mask of IBV_WC_EX_WITH_*.
inline constexpr std::uint64_t kReadableFields = std::uint64_t{IBV_WC_STANDARD_FLAGS} |
                                                 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                                 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

// Makes `cq` an extended CQ whose completions offer `fields`, part of kReadableFields. Other fields have no function,
// as on mlx5.
void set_poll_functions(SimCq& cq, std::uint64_t fields);

}  // namespace verbscope::sim
