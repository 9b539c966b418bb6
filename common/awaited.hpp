// A value that threads of the host sleep for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace verbscope {

// An atomic whose changes wake those who wait for one. It does not use std::atomic::wait: with libstdc++ 12 two threads
// that meet at a barrier were seen both asleep, one of which had not been woken. There the waker looks for sleepers
// without a fence after its store, and the futex is one that the kernel looks up by its page; which of these it was is
// not known.
template <class T>
class Awaited {
 public:
  explicit Awaited(T value = T()) : value_(value) {}

  T load(std::memory_order order = std::memory_order_acquire) const { return value_.load(order); }

  // Changes the value and wakes all who wait.
  Awaited& operator=(T value) {
    {
      const std::lock_guard lock(mutex_);
      value_.store(value, std::memory_order_release);
    }
    changed_.notify_all();
    return *this;
  }

  // Until the value is another than `old`.
  void wait(T old) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return load() != old; });
  }

 private:
  std::atomic<T> value_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
};

}  // namespace verbscope
