#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "simulate/channel/channel.hpp"
#include "simulate/preload/children.hpp"
#include "simulate/preload/real.hpp"

namespace verbscope::simulate {
namespace {

bool names_library(char* const* environment) {
  bool joins = false, library = false;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t end = entry.find('=');
    if (end == entry.npos) continue;
    if (entry.substr(0, end) == kMemoryVariable) joins = true;
    if (entry.substr(0, end) == "LD_PRELOAD") library = entry.find("verbscope_simulate", end) != entry.npos;
  }
  return joins && library;
}

std::string find_by_path(const char* name) {
  const char* const path = getenv("PATH");
  if (std::strchr(name, '/') != nullptr) return name;
  std::string_view left = path == nullptr ? "/bin:/usr/bin" : path;
  while (!left.empty()) {
    const std::size_t end = std::min(left.find(':'), left.size());
    std::string file(left.substr(0, end));
    file.append(file.empty() ? "" : "/").append(name);
    if (access(file.c_str(), X_OK) == 0) return file;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return name;
}

struct File {
  explicit File(const char* name) : fd(open(name, O_RDONLY | O_CLOEXEC)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) REAL(close)(fd);
  }
  int fd;
};

bool has_interpreter(int fd, const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const off_t at = static_cast<off_t>(header.e_phoff) + i * header.e_phentsize;
    if (pread(fd, &segment, sizeof segment, at) == sizeof segment && segment.p_type == PT_INTERP) return true;
  }
  return false;
}

// `depth`: of scripts whose interpreters are scripts.
bool is_dynamic(const char* name, int depth) {
  constexpr int kMostScripts = 4;
  const File file(name);
  struct stat status {};
  if (file.fd < 0 || REAL(fstat)(file.fd, &status) != 0) return errno != EACCES;  // else it cannot begin
  const bool other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
  const bool other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
  if (other_user || other_group) return false;
  union {
    Elf64_Ehdr header;
    char text[256];
  } begin{};
  const ssize_t bytes = pread(file.fd, begin.text, sizeof begin.text - 1, 0);
  if (bytes >= static_cast<ssize_t>(sizeof begin.header) && std::memcmp(begin.text, ELFMAG, SELFMAG) == 0)
    return has_interpreter(file.fd, begin.header);
  if (std::strncmp(begin.text, "#!", 2) != 0) return is_dynamic("/bin/sh", kMostScripts);
  char* const interpreter = begin.text + 2 + std::strspn(begin.text + 2, " \t");
  interpreter[std::strcspn(interpreter, " \t\n")] = '\0';
  return depth < kMostScripts && is_dynamic(interpreter, depth + 1);
}

}  // namespace

bool takes_part(const char* file, char* const* environment, bool by_path) {
  if (!names_library(environment)) return false;
  return is_dynamic(by_path ? find_by_path(file).c_str() : file, 0);
}

}  // namespace verbscope::simulate
