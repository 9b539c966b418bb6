// What threads that share QPs and their completion queue know of each other: whoever polls takes what is there, and
// counts it here for the thread that posted it. Data path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace verbscope {

class SharedCompletions {
 public:
  // `members`: the threads; `queues`: the QPs that they share.
  SharedCompletions(std::size_t members, std::size_t queues)
      : stride_(queues + kApart), counts_(std::make_unique<std::atomic<std::uint64_t>[]>(members * stride_)) {}

  // Another thread took `completions` of what `member` posted to `queue`.
  void credit(std::size_t member, std::size_t queue, std::uint64_t completions) {
    count(member, queue).fetch_add(completions, std::memory_order_release);
  }

  // The completions of what `member` posted to `queue` that others have taken since the last call.
  std::uint64_t collect(std::size_t member, std::size_t queue) {
    std::atomic<std::uint64_t>& own = count(member, queue);
    return own.load(std::memory_order_relaxed) == 0 ? 0 : own.exchange(0, std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t kApart = 16;  // words, so that no two members have counts in one pair of cache lines

  std::atomic<std::uint64_t>& count(std::size_t member, std::size_t queue) { return counts_[member * stride_ + queue]; }

  std::size_t stride_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;
};

}  // namespace verbscope
