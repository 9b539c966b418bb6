// A bell that threads ring, so that one that sleeps in poll() wakes.
#pragma once

#include "common/fd.hpp"

namespace verbscope {

class Bell {
 public:
  Bell();  // throws Error: no file descriptor is left

  // From any thread; what it wrote before is seen by whoever wakes.
  void ring() const noexcept;
  // Readable since a ring, until silence().
  int fd() const { return fd_.get(); }
  void silence() const noexcept;

 private:
  Fd fd_;
};

}  // namespace verbscope
