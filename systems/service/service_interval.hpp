// The measured interval of a service: the time that its record is about.
#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "common/units.hpp"

namespace verbscope {

// Of one process, or of a simulated cluster. Threads begin and end it: it lasts from the last begin to the first end
// after it. Thread-safe.
class ServiceInterval {
 public:
  // Called when the interval begins or ends, to read counters.
  using Note = std::function<void()>;
  ServiceInterval(Note at_begin, Note at_end) : at_begin_(std::move(at_begin)), at_end_(std::move(at_end)) {}

  void begin(Picos now) {
    const std::lock_guard lock(mutex_);
    if (end_) return;
    begin_ = now;
    at_begin_();
  }
  void end(Picos now) {
    const std::lock_guard lock(mutex_);
    if (end_ || !begin_) return;
    end_ = now;
    at_end_();
  }
  // None: no thread has begun and ended it. Call after the threads have ended.
  std::optional<Picos> length() const { return end_ ? std::optional(*end_ - *begin_) : std::nullopt; }

 private:
  const Note at_begin_, at_end_;
  std::mutex mutex_;
  std::optional<Picos> begin_, end_;
};

}  // namespace verbscope
