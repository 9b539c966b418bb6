// Wakes a thread that sleeps in poll() (an eventfd).
#pragma once

#include "common/fd.hpp"

namespace verbscope {

class EventFd {
 public:
  EventFd();  // throws Error if no file descriptor is left

  // Thread-safe. The woken thread sees all earlier writes of the caller.
  void signal() const noexcept;
  // Readable after signal(), until clear().
  int fd() const { return fd_.get(); }
  void clear() const noexcept;

 private:
  Fd fd_;
};

}  // namespace verbscope
