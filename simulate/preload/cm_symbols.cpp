// The C library's functions through which librdmacm uses the character device of the connection manager.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "simulate/preload/connection_manager.hpp"
#include "simulate/preload/exported.hpp"
#include "simulate/preload/session.hpp"

using namespace verbscope::simulate;

namespace {

template <class Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define NEXT(function)                                     \
  ([] {                                                    \
    static auto* const found = next(&function, #function); \
    return found;                                          \
  }())

}  // namespace

EXPORTED int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = __OPEN_NEEDS_MODE(flags) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  return is_connection_manager(path) ? open_connection_manager(flags) : NEXT(open)(path, flags, mode);
}

EXPORTED int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = __OPEN_NEEDS_MODE(flags) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  return is_connection_manager(path) ? open_connection_manager(flags) : NEXT(open64)(path, flags, mode);
}

EXPORTED int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = __OPEN_NEEDS_MODE(flags) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  return is_connection_manager(path) ? open_connection_manager(flags) : NEXT(openat)(folder, path, flags, mode);
}

EXPORTED ssize_t write(int fd, const void* from, size_t bytes) {
  return is_connection_manager(fd) ? write_connection_manager(fd, from, bytes) : NEXT(write)(fd, from, bytes);
}

EXPORTED int close(int fd) {
  return is_connection_manager(fd) ? close_connection_manager(fd) : NEXT(close)(fd);
}

EXPORTED int fstat(int fd, struct stat* status) {
  return is_connection_manager(fd) ? stat_connection_manager(*status) : NEXT(fstat)(fd, status);
}

// librdmacm asks the kernel by netlink for the number of the device, which the simulated one does not have. Without an
// answer it takes the device by its name.
EXPORTED int socket(int family, int type, int protocol) {
  if (simulated() && family == AF_NETLINK && protocol == NETLINK_RDMA) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  return NEXT(socket)(family, type, protocol);
}
