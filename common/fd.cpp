#include "common/fd.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include "common/error.hpp"

namespace verbscope {

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

EventFd::EventFd() : fd_(check("eventfd", eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {}

void EventFd::signal() const noexcept {
  eventfd_write(fd_.get(), 1);  // fails only after 2^64 calls
}

void EventFd::clear() const noexcept {
  eventfd_t count = 0;
  eventfd_read(fd_.get(), &count);  // fails if signal() was not called
}

}  // namespace verbscope
