#include "simulate/server/timers.hpp"

#include <poll.h>

namespace verbscope::simulate {
namespace {

// A timer that runs out more often would leave the simulation no time for anything else.
constexpr std::int64_t kShortestIntervalPs = 1'000'000;

void make_unreadable(const Fd& fd) {
  pollfd events{fd.get(), POLLIN, 0};
  eventfd_t count = 0;
  if (fd.get() >= 0 && poll(&events, 1, 0) == 1) eventfd_read(fd.get(), &count);
}

}  // namespace

TimerState Timers::set(const TimerSettings& settings, Fd fd, Picos now) {
  const TimerState before = state(settings.id, now);
  make_unreadable(fd);
  Timer& timer = timers_[settings.id];
  timer.settings = settings;
  if (settings.interval_ps > 0) timer.settings.interval_ps = std::max(settings.interval_ps, kShortestIntervalPs);
  timer.fd = std::move(fd);
  return before;
}

TimerState Timers::state(std::int32_t id, Picos now) const {
  const auto found = timers_.find(id);
  if (found == timers_.end()) return {};
  const TimerSettings& settings = found->second.settings;
  if (settings.at_ps == kNever) return {.left_ps = 0, .interval_ps = settings.interval_ps};
  return {.left_ps = std::max<std::int64_t>(settings.at_ps - now.count(), 1), .interval_ps = settings.interval_ps};
}

std::int32_t Timers::overrun(std::int32_t id) const {
  const auto found = timers_.find(id);
  return found == timers_.end() ? 0 : found->second.overrun;
}

}  // namespace verbscope::simulate
