// Waiting, in virtual time, for another thread of the process: as futex(2), for the addresses of locks and the like. A
// thread that may end waits of others calls wake(), which asks the simulator only if there may be any.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>

#include "simulate/channel/message.hpp"

namespace verbscope::simulate {

// Waits until wake() for this address, if `word` is still `expected`; without a word for signals, also those that the
// thread blocks. Returns 0, EAGAIN if the word differs, ETIMEDOUT,
// or EINTR after a signal.
int wait_on(const void* address, const void* word, std::uint32_t expected, std::int64_t deadline);

// Counts those that wait for the addresses of a bucket, and what has ended waits.
struct Bucket {
  std::atomic<std::uint32_t> waiting;
  std::atomic<std::uint32_t> changes;
};
Bucket& bucket_of(const void* address);

// The calling thread may wait for an address as long as one lives. Look at what is waited for only after it is made.
class Waiting {
 public:
  explicit Waiting(const void* address) : address_(address), bucket_(bucket_of(address)) {
    bucket_.waiting.fetch_add(1, std::memory_order_seq_cst);
    look();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { bucket_.waiting.fetch_sub(1, std::memory_order_relaxed); }

  // Before each look at what is waited for.
  void look() { seen_ = bucket_.changes.load(std::memory_order_seq_cst); }
  // Until there is a change after the last look. Returns as wait_on.
  int wait(std::int64_t deadline) const { return wait_on(address_, &bucket_.changes, seen_, deadline); }

 private:
  const void* address_;
  Bucket& bucket_;
  std::uint32_t seen_;
};

// Ends the waits of up to `count` threads, those that have waited longest first.
void wake(const void* address, std::uint32_t count);
inline constexpr std::uint32_t kAll = UINT_MAX;

// Waits until `done` returns true. Returns 0, or ETIMEDOUT after the deadline.
template <class Done>
int wait_until(const void* address, std::int64_t deadline, Done&& done) {
  Waiting waiting(address);
  while (!done()) {
    if (waiting.wait(deadline) == ETIMEDOUT) return done() ? 0 : ETIMEDOUT;
    waiting.look();
  }
  return 0;
}
// The same, but returns EINTR after a signal.
template <class Done>
int wait_until_or_signal(const void* address, std::int64_t deadline, Done&& done) {
  Waiting waiting(address);
  while (!done()) {
    const int error = waiting.wait(deadline);
    if (error == EINTR || error == ETIMEDOUT) return done() ? 0 : error;
    waiting.look();
  }
  return 0;
}

}  // namespace verbscope::simulate
