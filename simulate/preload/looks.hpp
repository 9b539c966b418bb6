// How calls that wait for the operating system do so in virtual time. They look without waiting, and if there is
// nothing yet they ask the simulator to wait until it may have come: another thread has written, a child has ended.
#pragma once

#include <poll.h>
#include <sys/select.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <ctime>

#include "simulate/channel/message.hpp"
#include "simulate/preload/clock.hpp"
#include "simulate/preload/session.hpp"

namespace verbscope::simulate {

// Assumed times, which are in no profile: CPU time of a system call; latency of a TCP socket between two nodes; latency
// of pipes, eventfds and sockets within a node.
inline constexpr std::int64_t kSystemCallPs = 300'000;
inline constexpr std::int64_t kNetworkPs = 20'000'000;
inline constexpr std::int64_t kPipePs = 1'000'000;

// Time at which a wait of `limit`, a timespec or timeval, ends that begins now: 0 if it does not wait, kNever without a
// limit (null, a negative number).
template <class Span>
std::int64_t deadline_of(const Span* limit) {
  if (limit == nullptr) return kNever;
  const std::int64_t span = picos(*limit);
  return span <= 0 ? 0 : after(now_ps(0), span);
}
std::int64_t deadline_in_ms(int limit);

enum class Waited : std::uint8_t { look_again, timed_out, interrupted };

// A call that looks for what others change. The constructor lets them do all that they do before this call, so that
// looks and changes are in the order of virtual time.
class Look {
 public:
  // For a system call of this thread.
  Look();
  // Waits until another look may find something. `restarts`: the kernel would restart the call after a signal whose
  // handler has SA_RESTART. `for_room`: the call waits until others have read.
  Waited wait(std::int64_t deadline, bool restarts, bool for_room = false);
  // Call when there is data for the caller, before it reads them. Waits until the latency of the data has passed.
  // `key`: of data from the network (sockets.hpp); 0: unknown.
  void settle(std::uint64_t key) const;
  bool must_settle() const { return unseen_; }
  // The call has taken something from a buffer: those who wait for room look again.
  void has_read() const;

 private:
  bool waited_ = false;
  bool room_is_wanted_ = false;
  bool unseen_ = false;  // something that was sent over the network cannot be seen yet
};

// Call before a change for which other threads may wait. They see it after `latency`. `key`: of data on the network.
void announce(std::int64_t latency_ps, std::uint64_t key = 0);
// Likewise, before a write to this file descriptor or its end. Does nothing for regular files and terminals, for which
// no thread waits.
void announce_by(int fd);

// True if reading and writing may have to wait for others: sockets, pipes, events, timers; not files and terminals.
bool waits_for_others(int fd);
bool is_socket(int fd);
bool blocks(int fd);  // without O_NONBLOCK
bool is_ready(int fd, short events);

// Waits until `fd` is ready for `events`, or returns at once if it does not block. False and errno: time-out (EAGAIN),
// or a signal (EINTR).
bool await_ready(Look& look, int fd, short events, std::int64_t deadline = kNever);

// Calls `function`, which returns a result other than `nothing` if it has something, until it has, the deadline has
// passed (`nothing`), or a signal has come (-1 and EINTR).
// `settle(look)` is called before the result is returned.
template <class Result, class Function, class Settle = void (*)(const Look&)>
Result look_until(
    std::int64_t deadline, bool restarts, Result nothing, Function&& function, Settle&& settle = [](const Look&) {}) {
  Look look;
  for (;;) {
    const Result result = function();
    if (result != nothing && look.must_settle()) settle(look);
    if (result != nothing || deadline == 0) return result;
    switch (look.wait(deadline, restarts)) {
      case Waited::look_again:
        break;
      case Waited::timed_out:
        return function();
      case Waited::interrupted:
        errno = EINTR;
        return Result(-1);
    }
  }
}

}  // namespace verbscope::simulate
