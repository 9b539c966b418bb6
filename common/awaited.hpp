// An atomic value whose changes wake waiting threads of the host.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace verbscope {

// A replacement for std::atomic::wait. With libstdc++ 12, two threads that met at a barrier were seen asleep at the
// same time, one of them not woken. There the waker checks for sleepers without a fence after its store, and the kernel
// looks up the futex by its page; which of these was the cause is not known.
template <class T>
class Awaited {
 public:
  explicit Awaited(T value = T()) : value_(value) {}

  T load(std::memory_order order = std::memory_order_acquire) const { return value_.load(order); }

  // Changes the value and wakes all waiting threads.
  Awaited& operator=(T value) {
    {
      const std::lock_guard lock(mutex_);
      value_.store(value, std::memory_order_release);
    }
    changed_.notify_all();
    return *this;
  }

  // Waits until the value differs from `old`.
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
