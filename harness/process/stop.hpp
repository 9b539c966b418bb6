// A stop ends a wait before its time: a signal to this process, or a descriptor that becomes readable.
#pragma once

#include "common/fd.hpp"

namespace verbscope {

// "Stop" has come once the descriptor is readable, or closed at its other end. It must live as long as this.
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

// While it lives, SIGINT, SIGTERM and SIGHUP (where it was not ignored) do not end this process but count as "stop",
// for good and for every thread started after it; output that nobody takes does not outlast it. Children start with the
// default.
class Interrupt : public StopSource {
 public:
  Interrupt();
  ~Interrupt();
};

}  // namespace verbscope
