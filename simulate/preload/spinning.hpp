// Threads that watch memory without a call, as ib_write_lat does. A timer looks at a thread that has not called for a
// while, some times. If its registers and the top of its stack are all as they were at a look before, and it has gone on
// in between, it is in a loop: it will stay there until another thread or a peer writes to memory. It tells the simulator
// so, and waits for that.
#pragma once

#include <cstdint>

#include "simulate/channel/channel.hpp"

namespace verbscope::simulate {

// From now on in all threads.
void find_loops();
// The thread goes on with its program.
void look_for_loop(const Channel& channel);
// The thread does something else: it makes a request.
void give_up_loop();
// The thread ends; the thread is a copy by fork(2), which has no timers.
void end_looks();
void forget_looks();
// Looks at this thread so far. They must not seem to be signals that end a wait.
std::uint32_t looks_at_thread();

}  // namespace verbscope::simulate
