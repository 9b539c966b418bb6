// The signals that this library needs: SIGSEGV for the time stamp counter (tsc.hpp), SIGTRAP and kLookSignal for loops
// (spinning.hpp). The program may handle them too: what it sets is kept, and called for those that are its own.
#pragma once

#include <signal.h>
#include <ucontext.h>

namespace verbscope::simulate {

// SIGRTMAX, of the library's timers. The kernel keeps one pending SIGTRAP only, which may be the program's.
inline constexpr int kLookSignal = 64;

bool is_taken(int signal);
// The kernel's mask never has the library's signals.
sigset_t without_taken(sigset_t set);

// Returns true if the signal was for the library.
using TakenHandler = bool (*)(siginfo_t& info, ucontext_t& context);
// Handles the signal from now on, in all threads. The calling thread and those that it creates do not block it.
void take_signal(int signal, TakenHandler handler);

// While one lives, the handler of the signal may be interrupted by the same signal.
class Deliverable {
 public:
  explicit Deliverable(int signal);
  Deliverable(const Deliverable&) = delete;
  Deliverable& operator=(const Deliverable&) = delete;
  ~Deliverable();

 private:
  int signal_;
};

// The program's action for one of these signals, as of sigaction(2).
int set_program_action(int signal, const struct sigaction* action, struct sigaction* before);

}  // namespace verbscope::simulate
