// Cores that a process has for its threads, as far as verbscope is concerned: a lock (flock) on a file for each core,
// verbscope-core-N.lock, which the kernel drops when its holder ends, however it ends. The files stay.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "common/fd.hpp"

namespace verbscope {

// The folder of the locks that every user of this machine can write to: /run/lock, else /tmp.
std::filesystem::path core_lock_folder();

// The cores on which threads run, and what is to be told of the choice.
struct CoreChoice {
  std::vector<int> cores;      // of the threads, in their order
  std::vector<int> contested;  // those of them that another process holds
};

class CoreClaims {
 public:
  explicit CoreClaims(std::filesystem::path folder = core_lock_folder()) : folder_(std::move(folder)) {}

  // Holds `core` from now on, while this object lives. False when another process, or another object, holds it. A core
  // whose file cannot be locked, for lack of rights, counts as free.
  bool claim(int core);

  // Claims `wanted` of the `allowed` cores, in their order: those that nobody holds and, when they are too few, others.
  CoreChoice choose(const std::vector<int>& allowed, std::size_t wanted);
  // Claims the first `wanted` of the cores that the person named.
  CoreChoice take(const std::vector<int>& named, std::size_t wanted);

 private:
  std::filesystem::path folder_;
  std::vector<Fd> locks_;
};

}  // namespace verbscope
