// Host threads that are pinned to a core, which is verified.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace verbscope {

// The cores that the calling thread may run on, ascending.
std::vector<int> allowed_cores();
// Formats a list of cores: "0-3,8".
std::string core_list(const std::vector<int>& cores);
// Throws "core 7: this process may run on cores 0-1" unless allowed.
void check_core(int core);

// Pins the calling thread to `core` and verifies it (affinity mask and sched_getcpu). Throws on failure.
void pin_this_thread(int core);

// Restricts the calling thread to `cores` for the lifetime of this object, which must be destroyed in the same thread;
// then restores the old cores. No effect if `cores` is empty or the kernel refuses.
class ThreadKeptTo {
 public:
  explicit ThreadKeptTo(const std::vector<int>& cores);
  ThreadKeptTo(const ThreadKeptTo&) = delete;
  ThreadKeptTo& operator=(const ThreadKeptTo&) = delete;
  ~ThreadKeptTo();

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

}  // namespace verbscope
