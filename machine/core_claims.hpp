// Reserves cores for the threads of a process, among verbscope programs: one lock file (flock) per core,
// verbscope-core-N.lock. The kernel releases the lock when its holder ends, however it ends. The files remain.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "common/fd.hpp"

namespace verbscope {

// The folder for the lock files, writable for all users: /run/lock, else /tmp.
std::filesystem::path core_lock_folder();

// The chosen cores, and those of them that are in use.
struct CoreChoice {
  std::vector<int> cores;      // in the order of the threads
  std::vector<int> contested;  // those of them that another process has reserved
};

class CoreClaims {
 public:
  explicit CoreClaims(std::filesystem::path folder = core_lock_folder()) : folder_(std::move(folder)) {}

  // Reserves `core` for the lifetime of this object. Returns false if another process or object has reserved it. A core
  // whose file cannot be locked for lack of permissions counts as free.
  bool claim(int core);

  // Reserves `wanted` of the `allowed` cores in their order: free ones first, then others if there are too few.
  CoreChoice choose(const std::vector<int>& allowed, std::size_t wanted);
  // Reserves the first `wanted` of the cores that the user named.
  CoreChoice take(const std::vector<int>& named, std::size_t wanted);

 private:
  std::filesystem::path folder_;
  std::vector<Fd> locks_;
};

}  // namespace verbscope
