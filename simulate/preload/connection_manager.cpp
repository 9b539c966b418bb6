#include "simulate/preload/connection_manager.hpp"

#include <fcntl.h>
#include <rdma/rdma_cma_abi.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

#include "simulate/preload/session.hpp"

namespace verbscope::simulate {
namespace {

// The simulator's numbers of files, by their file descriptors; 0: it is no file of the device.
std::array<std::atomic<std::uint32_t>, 65536> files;
std::atomic<std::size_t> end_of_files = 0;  // behind the last one so far

std::atomic<std::uint32_t>* entry(int fd) {
  return fd >= 0 && static_cast<std::size_t>(fd) < files.size() ? &files[static_cast<std::size_t>(fd)] : nullptr;
}
std::uint32_t file_of(int fd) {
  const auto* const found = entry(fd);
  return found == nullptr ? 0 : found->load(std::memory_order_relaxed);
}

int failed(int error) {
  errno = error;
  return -1;
}

// By system calls, because the program's close(2) leads here.
int close_fd(int fd) {
  return static_cast<int>(syscall(SYS_close, fd));
}

// The command as a structure of the protocol. What is beyond its end is zero.
template <class T>
T as(const void* command, std::size_t bytes) {
  T value{};
  std::memcpy(&value, command, bytes < sizeof value ? bytes : sizeof value);
  return value;
}

// What a command names by pointer or file descriptor, for the simulator.
struct Named {
  std::uint32_t source = 0;
  const void* option = nullptr;
  std::uint32_t option_bytes = 0;
};

Named named_by(const void* command, std::size_t bytes) {
  Named named;
  switch (as<ucma_abi_cmd_hdr>(command, bytes).cmd) {
    case UCMA_CMD_MIGRATE_ID:
      named.source = file_of(static_cast<int>(as<ucma_abi_migrate_id>(command, bytes).fd));
      break;
    case UCMA_CMD_SET_OPTION: {
      const auto set = as<ucma_abi_set_option>(command, bytes);
      named.option = reinterpret_cast<const void*>(set.optval);
      named.option_bytes = set.optlen;
      break;
    }
    default:
      break;
  }
  return named;
}

}  // namespace

bool is_connection_manager(const char* path) {
  return simulated() && path != nullptr && std::strcmp(path, kConnectionManagerPath) == 0;
}

bool is_connection_manager(int fd) {
  return file_of(fd) != 0;
}

int open_connection_manager(int flags) {
  const int fd =
      eventfd(0, ((flags & O_CLOEXEC) != 0 ? EFD_CLOEXEC : 0) | ((flags & O_NONBLOCK) != 0 ? EFD_NONBLOCK : 0));
  if (fd < 0) return -1;
  Request request(Operation::cm_open);
  const int error = entry(fd) == nullptr ? EMFILE : request.put(fd).ask();
  if (error != 0) {
    close_fd(fd);
    return failed(error);
  }
  entry(fd)->store(request.get<std::uint32_t>(), std::memory_order_relaxed);
  std::size_t end = end_of_files.load();
  while (end <= static_cast<std::size_t>(fd) && !end_of_files.compare_exchange_weak(end, static_cast<std::size_t>(fd) + 1)) {
  }
  return fd;
}

int close_connection_manager(int fd) {
  const std::uint32_t file = entry(fd)->exchange(0, std::memory_order_relaxed);
  ask(Operation::cm_close, file);
  return close_fd(fd);
}

ssize_t write_connection_manager(int fd, const void* command, std::size_t bytes) {
  const int flags = fcntl(fd, F_GETFL);
  const Named named = named_by(command, bytes);
  const bool may_wait = as<ucma_abi_cmd_hdr>(command, bytes).cmd == UCMA_CMD_GET_EVENT;
  Request request(may_wait ? Operation::cm_get_event : Operation::cm_command);
  request.put(file_of(fd)).put(flags >= 0 && (flags & O_NONBLOCK) == 0).put(named.source);
  request.put(static_cast<std::uint32_t>(bytes)).put_bytes(command, bytes);
  request.put(named.option_bytes).put_bytes(named.option, named.option_bytes);
  const int error = request.ask();
  if (error != 0) return failed(error);
  const auto response = request.get<std::uint64_t>();
  const auto answer = request.bytes(kMessageBytes);
  if (!answer.empty()) std::memcpy(reinterpret_cast<void*>(response), answer.data(), answer.size());
  return static_cast<ssize_t>(bytes);
}

int stat_connection_manager(struct stat& status) {
  status = {};
  status.st_mode = S_IFCHR | 0666;
  status.st_nlink = 1;
  status.st_rdev = kConnectionManagerDevice;
  return 0;
}

}  // namespace verbscope::simulate

// At the end of a program its files are closed in virtual time: the simulator sees the end of the process at some
// later time, which is not the same in each run.
__attribute__((destructor)) static void close_connection_managers() {
  using namespace verbscope::simulate;
  if (!simulated()) return;
  for (std::size_t fd = 0; fd < end_of_files.load(); ++fd) {
    if (is_connection_manager(static_cast<int>(fd))) close_connection_manager(static_cast<int>(fd));
  }
}
