// Signals of the program: those that this library needs stay deliverable (taken_signals.hpp), and waits for signals take
// virtual time. Also the ids of processes.
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "simulate/preload/clock.hpp"
#include "simulate/preload/taken_signals.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"
#include "simulate/preload/waiting.hpp"

namespace verbscope::simulate {
namespace {

// Those of the library's signals that the thread wants to be blocked. The kernel's mask never has them.
thread_local constinit bool faults_blocked = false;
thread_local constinit bool traps_blocked = false;
thread_local constinit bool looks_blocked = false;

// Keeps what a change of the mask says about one of the library's signals, and adds what it was to `before`.
void change_own(int signal, bool& blocked, int how, const sigset_t* set, sigset_t* before) {
  if (before != nullptr && blocked) sigaddset(before, signal);
  if (set == nullptr) return;
  const bool named = sigismember(set, signal) == 1;
  if (how == SIG_SETMASK) blocked = named;
  if (how == SIG_BLOCK) blocked = blocked || named;
  if (how == SIG_UNBLOCK) blocked = blocked && !named;
}

// The simulator sends the signals of timers to a thread that does not block them.
void tell_mask() {
  std::uint64_t blocked = 0;
  ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &blocked, sizeof blocked);
  own_channel().blocked_signals.store(blocked);
}

// `set_mask`: pthread_sigmask or sigprocmask.
int change_mask(auto* set_mask, int how, const sigset_t* set, sigset_t* before) {
  if (!simulated()) return set_mask(how, set, before);
  // `set` and `before` may be the same.
  const std::optional<sigset_t> asked = set == nullptr ? std::nullopt : std::optional(*set);
  const sigset_t wanted = asked ? without_taken(*asked) : sigset_t{};
  const int result = set_mask(how, asked ? &wanted : nullptr, before);
  if (result != 0) return result;
  change_own(SIGSEGV, faults_blocked, how, asked ? &*asked : nullptr, before);
  change_own(SIGTRAP, traps_blocked, how, asked ? &*asked : nullptr, before);
  change_own(kLookSignal, looks_blocked, how, asked ? &*asked : nullptr, before);
  if (!asked) return 0;
  tell_mask();
  return 0;
}

sighandler_t set_handler(int signal, sighandler_t handler, int flags, sighandler_t (*set)(int, sighandler_t)) {
  if (!simulated() || !is_taken(signal)) return set(signal, handler);
  struct sigaction action {
  }, before{};
  action.sa_handler = handler;
  action.sa_flags = flags;
  set_program_action(signal, &action, &before);
  return before.sa_handler;
}

// Until a signal is pending or a handler has run: EINTR.
int await_news(std::int64_t deadline) {
  return wait_on(nullptr, nullptr, 0, deadline);
}

// Until a signal handler has run.
int await_handler() {
  while (await_news(kNever) != EINTR) {
  }
  pthread_testcancel();
  errno = EINTR;
  return -1;
}

// As sigtimedwait(2), with a deadline in virtual time.
int await_signal(const sigset_t* set, siginfo_t* info, std::int64_t deadline) {
  constexpr timespec kNow{};
  for (;;) {
    const int signal = REAL(sigtimedwait)(set, info, &kNow);
    if (signal > 0 || errno != EAGAIN) return signal;
    // The simulator interrupts the wait for each signal, which is pending then if the thread blocks it.
    const int error = await_news(deadline);
    if (error == EINTR) pthread_testcancel();
    if (error == ETIMEDOUT) return REAL(sigtimedwait)(set, info, &kNow);
  }
}

// True if the address is in the main program, not in a library.
bool in_main_program(const void* address) {
  static const auto range = [] {
    std::pair<std::uint64_t, std::uint64_t> found{};
    const auto first = [](dl_phdr_info* info, std::size_t, void* to) {
      auto& of = *static_cast<std::pair<std::uint64_t, std::uint64_t>*>(to);
      for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD) continue;
        const std::uint64_t begin = info->dlpi_addr + segment.p_vaddr;
        if (of.first == 0) of.first = begin;
        of.second = std::max<std::uint64_t>(of.second, begin + segment.p_memsz);
      }
      return 1;  // the first is the main program
    };
    dl_iterate_phdr(first, &found);
    return found;
  }();
  const auto at = reinterpret_cast<std::uint64_t>(address);
  return at >= range.first && at < range.second;
}

// The operating system's id of a process.
pid_t real_id(pid_t id) {
  if (!simulated() || id <= kFirstProcessId) return id;
  Request request(Operation::find_process);
  return request.put(id - kFirstProcessId).ask() == 0 ? request.get<pid_t>() : id;
}

}  // namespace
}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED int sigaction(int signal, const struct sigaction* action, struct sigaction* before) {
  if (!simulated()) return REAL(sigaction)(signal, action, before);
  if (is_taken(signal)) return set_program_action(signal, action, before);
  if (action == nullptr) return REAL(sigaction)(signal, action, before);
  struct sigaction changed = *action;
  changed.sa_mask = without_taken(action->sa_mask);
  return REAL(sigaction)(signal, &changed, before);
}

EXPORTED sighandler_t signal(int signal, sighandler_t handler) {
  return set_handler(signal, handler, SA_RESTART, REAL(signal));
}
EXPORTED sighandler_t ssignal(int signal, sighandler_t handler) {
  return set_handler(signal, handler, SA_RESTART, REAL(signal));
}
EXPORTED sighandler_t sysv_signal(int signal, sighandler_t handler) {
  return set_handler(signal, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER), REAL(sysv_signal));
}
EXPORTED sighandler_t __sysv_signal(int signal, sighandler_t handler) {
  return sysv_signal(signal, handler);
}

EXPORTED int sigprocmask(int how, const sigset_t* set, sigset_t* before) {
  return change_mask(REAL(sigprocmask), how, set, before);
}
EXPORTED int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  return change_mask(REAL(pthread_sigmask), how, set, before);
}

EXPORTED int pause() {
  return simulated() ? await_handler() : REAL(pause)();
}

EXPORTED int sigsuspend(const sigset_t* mask) {
  if (!simulated()) return REAL(sigsuspend)(mask);
  sigset_t before{}, pending{};
  // A signal that is pending is delivered with the change of the mask, before the wait.
  sigpending(&pending);
  bool comes = false;
  for (int signal = 1; signal < NSIG; ++signal) {
    comes = comes || (sigismember(&pending, signal) == 1 && sigismember(mask, signal) == 0);
  }
  pthread_sigmask(SIG_SETMASK, mask, &before);
  if (!comes) await_handler();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = EINTR;
  return -1;
}

EXPORTED int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* span) {
  if (!simulated()) return REAL(sigtimedwait)(set, info, span);
  if (span != nullptr && !valid(*span)) {
    errno = EINVAL;
    return -1;
  }
  return await_signal(set, info, span == nullptr ? kNever : after(now_ps(kReadClockPs), picos(*span)));
}
EXPORTED int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  return simulated() ? await_signal(set, info, kNever) : REAL(sigwaitinfo)(set, info);
}
EXPORTED int sigwait(const sigset_t* set, int* signal) {
  if (!simulated()) return REAL(sigwait)(set, signal);
  siginfo_t info{};
  const int found = await_signal(set, &info, kNever);
  if (found < 0) return errno;
  *signal = found;
  return 0;
}

// Programs make numbers of it that they print or send, such as the PSN of perftest, which must be equal in repeats.
// Libraries get the operating system's, because they make names and keys of it that must differ from those of programs
// outside of the simulation.
EXPORTED pid_t getpid() {
  const bool own = simulated() && in_main_program(__builtin_return_address(0));
  return own ? kFirstProcessId + process_number() : REAL(getpid)();
}

EXPORTED int kill(pid_t process, int signal) {
  const pid_t target = real_id(process);
  const int result = REAL(kill)(target, signal);
  if (result == 0 && signal != 0 && simulated() && target != REAL(getpid)()) ask(Operation::await_reaction, target, signal);
  return result;
}
