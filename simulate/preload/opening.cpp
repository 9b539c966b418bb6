// The C library's functions that open files, for those that a node has in place of this machine's: the character device
// of the connection manager, and the kernel's boot id.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstring>

#include "simulate/preload/connection_manager.hpp"
#include "simulate/preload/real.hpp"
#include "simulate/preload/session.hpp"

namespace verbscope::simulate {
namespace {

bool is_boot_id(const char* path) {
  return simulated() && path != nullptr && std::strcmp(path, "/proc/sys/kernel/random/boot_id") == 0;
}

// Libraries such as UCX share memory among processes that have the same boot id.
int open_boot_id(int flags) {
  char text[64];
  const int length = std::snprintf(text, sizeof text, "73696d75-6c61-4000-8000-%012x\n", node());
  const int fd = memfd_create("boot_id", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
  if (fd >= 0) pwrite(fd, text, static_cast<std::size_t>(length), 0);
  return fd;
}

template <class Open>
int open_file(const char* path, int flags, Open&& open_real) {
  if (is_connection_manager(path)) return open_connection_manager(flags);
  return is_boot_id(path) ? open_boot_id(flags) : open_real();
}

template <class Open>
FILE* open_stream(const char* path, const char* mode, Open&& open_real) {
  return is_boot_id(path) ? fdopen(open_boot_id(O_CLOEXEC), mode) : open_real();
}

}  // namespace
}  // namespace verbscope::simulate

using namespace verbscope::simulate;

EXPORTED int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = __OPEN_NEEDS_MODE(flags) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  return open_file(path, flags, [=] { return REAL(open)(path, flags, mode); });
}

EXPORTED int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = __OPEN_NEEDS_MODE(flags) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  return open_file(path, flags, [=] { return REAL(open64)(path, flags, mode); });
}

EXPORTED int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = __OPEN_NEEDS_MODE(flags) ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  return open_file(path, flags, [=] { return REAL(openat)(folder, path, flags, mode); });
}

EXPORTED FILE* fopen(const char* path, const char* mode) {
  return open_stream(path, mode, [=] { return REAL(fopen)(path, mode); });
}

EXPORTED FILE* fopen64(const char* path, const char* mode) {
  return open_stream(path, mode, [=] { return REAL(fopen64)(path, mode); });
}

EXPORTED int fstat(int fd, struct stat* status) {
  return is_connection_manager(fd) ? stat_connection_manager(*status) : REAL(fstat)(fd, status);
}
