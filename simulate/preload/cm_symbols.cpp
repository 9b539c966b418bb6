// The C library's functions by which librdmacm opens the character device of the connection manager; those that write
// and close are with other files'.
#include <fcntl.h>

#include <cstdarg>

#include "simulate/preload/connection_manager.hpp"
#include "simulate/preload/real.hpp"

using namespace verbscope::simulate;

EXPORTED int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = __OPEN_NEEDS_MODE(flags) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  return is_connection_manager(path) ? open_connection_manager(flags) : REAL(open)(path, flags, mode);
}

EXPORTED int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = __OPEN_NEEDS_MODE(flags) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  return is_connection_manager(path) ? open_connection_manager(flags) : REAL(open64)(path, flags, mode);
}

EXPORTED int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = __OPEN_NEEDS_MODE(flags) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  return is_connection_manager(path) ? open_connection_manager(flags) : REAL(openat)(folder, path, flags, mode);
}

EXPORTED int fstat(int fd, struct stat* status) {
  return is_connection_manager(fd) ? stat_connection_manager(*status) : REAL(fstat)(fd, status);
}
