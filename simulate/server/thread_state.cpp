#include "simulate/server/thread_state.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

namespace verbscope::simulate {
namespace {

// Fills the buffer with the beginning of the file, up to a null. Returns false if there is no such file.
bool read_file(const std::string& path, std::span<char> to) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t length = ::read(fd, to.data(), to.size() - 1);
  close(fd);
  to[length > 0 ? static_cast<std::size_t>(length) : 0] = '\0';
  return true;
}

}  // namespace

ThreadState state_of(int process, int thread) {
  char text[512];
  if (!read_file("/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/stat", text)) return {};
  const char* const end = std::strrchr(text, ')');  // the name before it may have any characters
  ThreadState found;
  if (end != nullptr) {
    std::sscanf(end + 1, " %c %d %*d %*d %*d %*d %*u %" SCNu64, &found.state, &found.parent, &found.page_faults);
  }
  return found;
}

bool catches(int process, int signal) {
  char text[4096];
  if (!read_file("/proc/" + std::to_string(process) + "/status", text)) return false;
  const char* const line = std::strstr(text, "\nSigCgt:");
  std::uint64_t caught = 0;
  return line != nullptr && std::sscanf(line, "\nSigCgt: %" SCNx64, &caught) == 1 && (caught >> (signal - 1) & 1) != 0;
}

}  // namespace verbscope::simulate
