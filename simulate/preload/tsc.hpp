// The time stamp counter, in virtual time: the processor raises SIGSEGV for rdtsc and rdtscp, whose handler here puts
// the virtual counter into the registers. The program may handle SIGSEGV too: what it sets is kept, and called for its
// own faults.
#pragma once

#include <signal.h>

namespace verbscope::simulate {

// From now on in the calling thread, and in those that it creates. The kernel keeps this for the child of fork(2) and
// after execve(2).
void trap_time_stamp_counter();

// While one lives, the calling thread reads the processor's counter. For execve(2), posix_spawn(3) and the like: the
// new program begins without a handler.
class TscAllowed {
 public:
  TscAllowed();
  TscAllowed(const TscAllowed&) = delete;
  TscAllowed& operator=(const TscAllowed&) = delete;
  ~TscAllowed();
};

// The program's action for SIGSEGV, as of sigaction(2).
int set_fault_action(const struct sigaction* action, struct sigaction* before);

}  // namespace verbscope::simulate
