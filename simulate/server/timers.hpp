// The timers of a process.
#pragma once

#include <sys/eventfd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/fd.hpp"
#include "common/units.hpp"
#include "simulate/channel/message.hpp"

namespace verbscope::simulate {

class Timers {
 public:
  struct Timer {
    TimerSettings settings;
    Fd fd;                 // the simulator's copy
    std::int32_t overrun;  // of its last signal
  };

  // Returns the state before. The file descriptor of a timer is not readable any more.
  TimerState set(const TimerSettings& settings, Fd fd, Picos now);
  TimerState state(std::int32_t id, Picos now) const;
  std::int32_t overrun(std::int32_t id) const;
  void remove(std::int32_t id) { timers_.erase(id); }
  void clear() { timers_.clear(); }

  // Calls `expired(timer, times)` for each timer that has run out, and `next(when)` for when it does again.
  template <class Expired, class Next>
  void ring(Picos now, Expired&& expired, Next&& next) {
    for (auto& [id, timer] : timers_) {
      TimerSettings& settings = timer.settings;
      if (settings.at_ps > now.count()) continue;
      std::int64_t times = 1;
      if (settings.interval_ps > 0) {
        times += (now.count() - settings.at_ps) / settings.interval_ps;
        settings.at_ps += times * settings.interval_ps;
        next(Picos(settings.at_ps));
      } else {
        settings.at_ps = kNever;
      }
      expired(timer, times);
    }
  }

 private:
  std::map<std::int32_t, Timer> timers_;
};

}  // namespace verbscope::simulate
