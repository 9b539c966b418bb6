// The ends of threads.
#pragma once

namespace verbscope::simulate {

// The calling thread, which has begun in the simulation, leaves it when it ends, however it ends.
void end_with_thread();

}  // namespace verbscope::simulate
