// The kernel's connection manager as a program sees it: the character device /dev/infiniband/rdma_cm, to which
// librdmacm writes commands. The simulator executes them (simulate/server/connection_manager.hpp). A file is an eventfd
// which the simulator makes readable while an event waits.
//
// Not as in the kernel: a copy of the file descriptor (dup(2)) is no file of the connection manager, and a child of
// fork(2) cannot use those of its parent.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

namespace verbscope::simulate {

inline constexpr const char* kConnectionManagerPath = "/dev/infiniband/rdma_cm";
// Major number 10, of drivers that leave the minor number to the kernel.
inline constexpr dev_t kConnectionManagerDevice = 10 << 8;

// True if the path names the device.
bool is_connection_manager(const char* path);
// True if the file descriptor is a file of the device.
bool is_connection_manager(int fd);

// open(2), write(2) and close(2) of the device: -1 and errno on errors.
int open_connection_manager(int flags);
ssize_t write_connection_manager(int fd, const void* command, std::size_t bytes);
int close_connection_manager(int fd);
// fstat(2) of a file of the device. Always succeeds.
int stat_connection_manager(struct stat& status);

}  // namespace verbscope::simulate
