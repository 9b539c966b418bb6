#include "simulate/preload/taken_signals.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "simulate/preload/real.hpp"

namespace verbscope::simulate {
namespace {

struct TakenSignal {
  TakenHandler handler = nullptr;
  struct sigaction program_action {};  // SIG_DFL at first
};
constinit TakenSignal fault_signal, trap_signal, look_signal;

TakenSignal& state_of(int signal) {
  if (signal == SIGSEGV) return fault_signal;
  return signal == SIGTRAP ? trap_signal : look_signal;
}

void change_mask_of(int how, int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  REAL(pthread_sigmask)(how, &set, nullptr);
}

// The program has no handler: the signal ends it, as if this library had none.
void end_without_handler(const siginfo_t& info) {
  struct sigaction standard {};
  REAL(sigaction)(info.si_signo, &standard, nullptr);
  // That of a fault comes again.
  if (info.si_code <= 0 || info.si_signo != SIGSEGV)
    syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), info.si_signo);
}

void on_signal(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  TakenSignal& own = state_of(signal);
  if (own.handler(*info, *static_cast<ucontext_t*>(context))) {
    errno = saved;
    return;
  }
  const struct sigaction action = own.program_action;
  if (action.sa_handler == SIG_IGN && info->si_code <= 0) return;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return end_without_handler(*info);
  if ((action.sa_flags & SA_RESETHAND) != 0) own.program_action.sa_handler = SIG_DFL;
  // The mask from before comes back when this handler returns.
  const sigset_t mask = without_taken(action.sa_mask);
  REAL(pthread_sigmask)(SIG_BLOCK, &mask, nullptr);
  const Deliverable faults(SIGSEGV), traps(SIGTRAP), looks(kLookSignal);
  errno = saved;
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(signal, info, context);
  } else {
    action.sa_handler(signal);
  }
}

}  // namespace

bool is_taken(int signal) {
  return signal == SIGSEGV || signal == SIGTRAP || signal == kLookSignal;
}

sigset_t without_taken(sigset_t set) {
  sigdelset(&set, SIGSEGV);
  sigdelset(&set, SIGTRAP);
  sigdelset(&set, kLookSignal);
  return set;
}

void take_signal(int signal, TakenHandler handler) {
  TakenSignal& own = state_of(signal);
  struct sigaction action {};
  action.sa_sigaction = &on_signal;
  // On the program's alternative stack, if it has one, because its own handler may need it.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigaddset(&action.sa_mask, kLookSignal);  // no looks at the library's own handlers
  if (std::exchange(own.handler, handler) == nullptr) REAL(sigaction)(signal, &action, &own.program_action);
  change_mask_of(SIG_UNBLOCK, signal);  // the parent may have blocked it
}

Deliverable::Deliverable(int signal) : signal_(signal) {
  change_mask_of(SIG_UNBLOCK, signal);
}
Deliverable::~Deliverable() {
  change_mask_of(SIG_BLOCK, signal_);
}

int set_program_action(int signal, const struct sigaction* action, struct sigaction* before) {
  struct sigaction& kept = state_of(signal).program_action;
  const struct sigaction old = kept;
  if (action != nullptr) kept = *action;
  if (before != nullptr) *before = old;
  return 0;
}

}  // namespace verbscope::simulate
