// Timers of processes, which the simulator keeps: signals and readable file descriptors at their virtual times.
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "simulate/preload/clock.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"
#include "simulate/preload/waiting.hpp"

namespace verbscope::simulate {
namespace {

// Numbers of timers: those of file descriptors are the descriptors, others follow.
constexpr int kMaxDescriptors = 1 << 16;
std::atomic<std::int32_t> next_timer = kMaxDescriptors;

// The file descriptors that are timers, with their clock and 1.
std::array<std::atomic<std::uint8_t>, kMaxDescriptors> clock_of_descriptor{};

struct Timer {
  TimerSettings settings;
  clockid_t clock;
  // Of SIGEV_THREAD: the thread that waits for the timer.
  pthread_t thread;
  sigevent event;
  std::atomic<std::uint32_t> ended;
};

// Linux gives SI_KERNEL, which the simulator must not send from its own process.
constexpr Signal kAlarm{.number = SIGALRM, .code = SI_TIMER, .value = 0, .timer = 0, .overrun = 0, .arrived = false};

int set(const TimerSettings& settings, TimerState& before) {
  Request request(Operation::set_timer);
  const int error = request.put(settings).ask();
  if (error == 0) before = request.get<TimerState>();
  return error;
}

TimerState state(std::int32_t id) {
  Request request(Operation::query_timer);
  request.put(id).ask();
  return request.get<TimerState>();
}

TimerState set_real_timer(std::int64_t span, std::int64_t interval) {
  const TimerSettings settings{.id = kRealTimer,
                               .thread = 0,
                               .signal = kAlarm,
                               .wake = 0,
                               .fd = -1,
                               .at_ps = span == 0 ? kNever : after(now_ps(kReadClockPs), span),
                               .interval_ps = interval};
  TimerState before{};
  set(settings, before);
  return before;
}

itimerval to_itimerval(const TimerState& state) {
  return {.it_interval = to_timeval(state.interval_ps), .it_value = to_timeval(state.left_ps)};
}
itimerspec to_itimerspec(const TimerState& state) {
  return {.it_interval = to_timespec(state.interval_ps), .it_value = to_timespec(state.left_ps)};
}

// Sets a timer as timer_settime(2) and timerfd_settime(2) do.
int settime(TimerSettings& settings, clockid_t clock, bool absolute, const itimerspec& time, itimerspec* before) {
  if (!valid(time.it_value) || !valid(time.it_interval)) return EINVAL;
  const bool runs = time.it_value.tv_sec != 0 || time.it_value.tv_nsec != 0;
  settings.at_ps = !runs      ? kNever
                   : absolute ? when_shown(clock, time.it_value)
                              : after(now_ps(kReadClockPs), picos(time.it_value));
  settings.interval_ps = picos(time.it_interval);
  TimerState state{};
  const int error = set(settings, state);
  if (error == 0 && before != nullptr) *before = to_itimerspec(state);
  return error;
}

int await_timer(const Timer& timer) {
  const Waiting waiting(&timer);
  return timer.ended.load() != 0 ? EAGAIN : waiting.wait(kNever);
}

// Calls the function of SIGEV_THREAD each time the timer runs out. Times during a call count as overruns.
void* run_timer(void* of) {
  Timer& timer = *static_cast<Timer*>(of);
  while (timer.ended.load() == 0) {
    const int error = await_timer(timer);
    if (error == 0 && timer.ended.load() == 0) timer.event.sigev_notify_function(timer.event.sigev_value);
  }
  std::free(&timer);
  return nullptr;
}

int start_thread(Timer& timer) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const int error = pthread_create(&timer.thread, &attributes, &run_timer, &timer);
  pthread_attr_destroy(&attributes);
  return error;
}

Timer& as_timer(timer_t timer) {
  return *static_cast<Timer*>(timer);
}

int clock_of(int fd) {
  return fd < 0 || fd >= kMaxDescriptors ? -1 : clock_of_descriptor[static_cast<std::size_t>(fd)].load() - 1;
}

}  // namespace
}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED unsigned alarm(unsigned seconds) {
  if (!simulated()) return REAL(alarm)(seconds);
  const std::int64_t left = set_real_timer(picos(seconds, 0), 0).left_ps;
  return static_cast<unsigned>(left / kPicosPerSecond +
                               (left % kPicosPerSecond >= kPicosPerSecond / 2 || (left > 0 && left < kPicosPerSecond)));
}

EXPORTED useconds_t ualarm(useconds_t micros, useconds_t interval) {
  if (!simulated()) return REAL(ualarm)(micros, interval);
  const std::int64_t left = set_real_timer(micros * kPicosPerMicro, interval * kPicosPerMicro).left_ps;
  return static_cast<useconds_t>(to_timeval(left).tv_sec * 1'000'000 + to_timeval(left).tv_usec);
}

EXPORTED int setitimer(__itimer_which_t which, const itimerval* time, itimerval* before) {
  if (!simulated() || which != ITIMER_REAL) return REAL(setitimer)(which, time, before);
  if (!valid(time->it_value) || !valid(time->it_interval)) return by_errno(EINVAL);
  const TimerState state = set_real_timer(picos(time->it_value), picos(time->it_interval));
  if (before != nullptr) *before = to_itimerval(state);
  return 0;
}

EXPORTED int getitimer(__itimer_which_t which, itimerval* time) {
  if (!simulated() || which != ITIMER_REAL) return REAL(getitimer)(which, time);
  *time = to_itimerval(state(kRealTimer));
  return 0;
}

EXPORTED int timer_create(clockid_t clock, sigevent* event, timer_t* made) {
  if (!simulated() || !is_virtual(clock)) return REAL(timer_create)(clock, event, made);
  auto* const timer = static_cast<Timer*>(std::calloc(1, sizeof(Timer)));
  if (timer == nullptr) return by_errno(ENOMEM);
  timer->clock = clock;
  TimerSettings& settings = timer->settings;
  settings.id = next_timer.fetch_add(1);
  settings.fd = -1;
  settings.at_ps = kNever;
  settings.signal = {.number = SIGALRM,
                     .code = SI_TIMER,
                     .value = static_cast<std::uint64_t>(settings.id),
                     .timer = settings.id,
                     .overrun = 0,
                     .arrived = false};
  const int how = event == nullptr ? SIGEV_SIGNAL : event->sigev_notify;
  if (event != nullptr) {
    settings.signal.number = event->sigev_signo;
    settings.signal.value = reinterpret_cast<std::uint64_t>(event->sigev_value.sival_ptr);
  }
  int error = 0;
  switch (how) {
    case SIGEV_SIGNAL:
      break;
    case SIGEV_THREAD_ID:
      settings.thread = event->_sigev_un._tid;
      break;
    case SIGEV_NONE:
      settings.signal.number = 0;
      break;
    case SIGEV_THREAD:
      settings.signal.number = 0;
      settings.wake = reinterpret_cast<std::uint64_t>(timer);
      timer->event = *event;
      error = start_thread(*timer);
      break;
    default:
      error = EINVAL;
  }
  if (settings.signal.number < 0 || settings.signal.number >= NSIG) error = EINVAL;
  if (error == 0) {
    *made = timer;
    return 0;
  }
  std::free(timer);
  return by_errno(error);
}

EXPORTED int timer_settime(timer_t timer, int flags, const itimerspec* time, itimerspec* before) {
  if (!simulated()) return REAL(timer_settime)(timer, flags, time, before);
  return by_errno(
      settime(as_timer(timer).settings, as_timer(timer).clock, (flags & TIMER_ABSTIME) != 0, *time, before));
}

EXPORTED int timer_gettime(timer_t timer, itimerspec* time) {
  if (!simulated()) return REAL(timer_gettime)(timer, time);
  *time = to_itimerspec(state(as_timer(timer).settings.id));
  return 0;
}

EXPORTED int timer_getoverrun(timer_t timer) {
  if (!simulated()) return REAL(timer_getoverrun)(timer);
  Request request(Operation::query_timer);
  request.put(as_timer(timer).settings.id).ask();
  request.get<TimerState>();
  return request.get<std::int32_t>();
}

EXPORTED int timer_delete(timer_t timer) {
  if (!simulated()) return REAL(timer_delete)(timer);
  ask(Operation::delete_timer, as_timer(timer).settings.id);
  if (as_timer(timer).settings.wake == 0) {
    std::free(timer);
  } else {
    as_timer(timer).ended = 1;
    wake(timer, 1);
  }
  return 0;
}

EXPORTED int timerfd_create(clockid_t clock, int flags) {
  if (!simulated() || !is_virtual(clock)) return REAL(timerfd_create)(clock, flags);
  static_assert(int{TFD_NONBLOCK} == int{EFD_NONBLOCK} && int{TFD_CLOEXEC} == int{EFD_CLOEXEC});
  const int fd = eventfd(0, flags);
  if (fd < 0 || fd >= kMaxDescriptors) return fd < 0 ? fd : by_errno(EMFILE);
  clock_of_descriptor[static_cast<std::size_t>(fd)] = static_cast<std::uint8_t>(clock + 1);
  return fd;
}

EXPORTED int timerfd_settime(int fd, int flags, const itimerspec* time, itimerspec* before) {
  const int clock = clock_of(fd);
  if (!simulated() || clock < 0) return REAL(timerfd_settime)(fd, flags, time, before);
  TimerSettings settings{.id = fd, .thread = 0, .signal = {}, .wake = 0, .fd = fd, .at_ps = 0, .interval_ps = 0};
  return by_errno(settime(settings, clock, (flags & TFD_TIMER_ABSTIME) != 0, *time, before));
}

EXPORTED int timerfd_gettime(int fd, itimerspec* time) {
  if (!simulated() || clock_of(fd) < 0) return REAL(timerfd_gettime)(fd, time);
  *time = to_itimerspec(state(fd));
  return 0;
}
