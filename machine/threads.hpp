// Threads of this machine: pinned to a core, which is verified; the cores that a process reserves; CPU time.
#pragma once

#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/fd.hpp"

namespace verbscope {

// The cores that the calling thread may run on, ascending.
std::vector<int> allowed_cores();
// Formats a list of cores: "0-3,8".
std::string core_list(const std::vector<int>& cores);
// Throws "core 7: this process may run on cores 0-1" unless allowed.
void check_core(int core);

// Restricts the calling thread to `cores` for the lifetime of this object, which must be destroyed in the same thread;
// then restores the old cores. No effect if `cores` is empty or the kernel refuses.
class ScopedAffinity {
 public:
  explicit ScopedAffinity(const std::vector<int>& cores);
  ScopedAffinity(const ScopedAffinity&) = delete;
  ScopedAffinity& operator=(const ScopedAffinity&) = delete;
  ~ScopedAffinity();

 private:
  std::vector<int> before_;
};

// A thread that runs `body` on `core` only. The constructor returns once the thread is pinned and verified, and throws
// if that fails; then `body` starts.
class PinnedThread {
 public:
  PinnedThread(int core, std::function<void(std::stop_token)> body);
  PinnedThread(PinnedThread&&) noexcept = default;
  PinnedThread& operator=(PinnedThread&& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(failure_, other.failure_);
    thread_.swap(other.thread_);
    return *this;
  }
  ~PinnedThread() = default;  // requests the body to stop and waits for it; drops its exception

  int core() const { return core_; }
  // Waits for the end of the body and rethrows its exception.
  void join();

 private:
  int core_;
  std::unique_ptr<std::exception_ptr> failure_;  // written by the thread before it ends; *this may move
  std::jthread thread_;
};

// The folder for the lock files, writable for all users: /run/lock, else /tmp.
std::filesystem::path core_lock_folder();

struct CoreChoice {
  std::vector<int> cores;      // in the order of the threads
  std::vector<int> contested;  // those of them that another process has reserved
};

// Reserves cores for the threads of a process, among verbscope programs: one lock file (flock) per core,
// verbscope-core-N.lock. The kernel releases the lock when its holder ends, also by a signal. The files remain.
class CoreClaims {
 public:
  explicit CoreClaims(std::filesystem::path folder = core_lock_folder()) : folder_(std::move(folder)) {}

  // Reserves `core` for the lifetime of this object. Returns false if another process or object has reserved it. A core
  // whose file cannot be locked for lack of permissions counts as free.
  bool claim(int core);

  // Reserves `wanted` of the `allowed` cores in their order: free ones first. If they are too few, adds others.
  CoreChoice claim_free(const std::vector<int>& allowed, std::size_t wanted);
  // Reserves the first `wanted` of the cores that the user named.
  CoreChoice claim_named(const std::vector<int>& named, std::size_t wanted);

 private:
  std::filesystem::path folder_;
  std::vector<Fd> locks_;
};

struct CpuSeconds {
  double user_s = 0;
  double system_s = 0;
  friend CpuSeconds operator-(CpuSeconds a, CpuSeconds b) { return {a.user_s - b.user_s, a.system_s - b.system_s}; }
};

// The CPU time of all threads of this process since its start (getrusage).
CpuSeconds process_cpu();

}  // namespace verbscope
