// The time stamp counter, in virtual time: the processor raises SIGSEGV for rdtsc and rdtscp, whose handler here puts
// the virtual counter into the registers.
#pragma once

namespace verbscope::simulate {

// From now on in the calling thread, and in those that it creates. The kernel keeps this for the child of fork(2) and
// after execve(2). False if the processor does not raise the signal, as in some virtual machines.
bool trap_time_stamp_counter();

// While one lives, the calling thread reads the processor's counter. For execve(2), posix_spawn(3) and the like: the
// new program begins without a handler.
class TscAllowed {
 public:
  TscAllowed();
  TscAllowed(const TscAllowed&) = delete;
  TscAllowed& operator=(const TscAllowed&) = delete;
  ~TscAllowed();
};

}  // namespace verbscope::simulate
