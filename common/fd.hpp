// Owns a file descriptor.
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

}  // namespace verbscope
