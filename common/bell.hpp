// Wakes a thread that sleeps in poll() (an eventfd).
#pragma once

#include "common/fd.hpp"

namespace verbscope {

class Bell {
 public:
  Bell();  // throws Error if no file descriptor is left

  // Thread-safe. The woken thread sees all earlier writes of the caller.
  void ring() const noexcept;
  // Readable after ring(), until silence().
  int fd() const { return fd_.get(); }
  void silence() const noexcept;

 private:
  Fd fd_;
};

}  // namespace verbscope
