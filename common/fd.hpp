// File descriptors: an owner, and an eventfd that wakes a thread.
#pragma once

#include <utility>

namespace verbscope {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();  // closes it

  int get() const { return fd_; }  // -1: none

 private:
  int fd_ = -1;
};

// Wakes a thread that sleeps in poll().
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
