#include "harness/process/find_program.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "common/error.hpp"

namespace verbscope {

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = folder + "/" + name;
    if (folder.starts_with('/') && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  fail("{} is not installed: it is in no folder of PATH", name);
}

}  // namespace verbscope
