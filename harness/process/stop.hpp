// A stop request ends a wait early: a signal to this process, or a descriptor that becomes readable.
#pragma once

#include "common/fd.hpp"

namespace verbscope {

// A stop is pending once the descriptor is readable or its other end is closed. The descriptor must outlive this
// object.
class StopSource {
 public:
  explicit StopSource(int fd) : fd_(fd) {}
  StopSource(const StopSource&) = delete;
  StopSource& operator=(const StopSource&) = delete;
  int fd() const { return fd_; }
  bool pending() const;

 private:
  int fd_;
};

// While this object lives, SIGINT, SIGTERM and SIGHUP (unless it was ignored) do not end this process but become a stop
// request, which stays pending, for this thread and all threads started after it. It also ends waits for output that
// nobody reads. Children start with the default actions.
class Interrupt : public StopSource {
 public:
  Interrupt();
  ~Interrupt();
};

}  // namespace verbscope
