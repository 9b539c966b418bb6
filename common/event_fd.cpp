#include "common/event_fd.hpp"

#include <sys/eventfd.h>

#include "common/error.hpp"

namespace verbscope {

EventFd::EventFd() : fd_(check("eventfd", eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {}

void EventFd::signal() const noexcept {
  eventfd_write(fd_.get(), 1);  // fails only after 2^64 calls
}

void EventFd::clear() const noexcept {
  eventfd_t rings = 0;
  eventfd_read(fd_.get(), &rings);  // fails if ring() was not called
}

}  // namespace verbscope
