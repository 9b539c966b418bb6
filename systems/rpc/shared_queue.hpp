// A queue between threads of one machine, with a lock, in memory that they share: requests on their way to worker
// threads, and responses on their way back (eRPC, NSDI 2019, section 3.2). Data path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/units.hpp"
#include "machine/node.hpp"

namespace verbscope {

template <class Entry>
class SharedQueue {
 public:
  static_assert(std::is_trivially_copyable_v<Entry>);

  // Bytes of a queue of up to `capacity` entries.
  static constexpr std::uint64_t bytes(std::uint32_t capacity) {
    return sizeof(Words) + round_up(capacity * std::uint64_t{sizeof(Entry)}, alignof(Words));
  }

  // `memory`: bytes(capacity), on a cache line, and zero before the first thread uses the queue.
  SharedQueue(std::byte* memory, std::uint32_t capacity)
      : words_(reinterpret_cast<Words*>(memory)),
        entries_(reinterpret_cast<Entry*>(memory + sizeof(Words))),
        capacity_(capacity) {}

  // Call once in the thread that pops, before its first poll.
  template <Node N>
  void watch(N& node) const {
    node.watch(&words_->tickets, sizeof words_->tickets);
  }

  // There must be room: the entries in the queue are never more than its capacity.
  template <Node N>
  void push(N& node, const Entry& entry) {
    const std::uint64_t ticket = lock(node);
    const std::uint64_t pushed = words_->pushed;
    entries_[pushed % capacity_] = entry;
    std::atomic_ref(words_->pushed).store(pushed + 1, std::memory_order_release);
    unlock(ticket);
  }
  // Only one thread pops. Returns false if the queue is empty.
  template <Node N>
  bool pop(N& node, Entry& entry) {
    if (std::atomic_ref(words_->pushed).load(std::memory_order_acquire) == words_->popped) return false;
    const std::uint64_t ticket = lock(node);
    entry = entries_[words_->popped++ % capacity_];
    unlock(ticket);
    return true;
  }

 private:
  // A ticket lock. On a simulated machine nobody waits for the lock, because no virtual time passes while it is held.
  // There `tickets` is the cache line that moves between the threads.
  struct alignas(64) Words {
    std::uint64_t tickets;
    std::uint64_t serving;
    std::uint64_t pushed;
    alignas(64) std::uint64_t popped;  // of the thread that pops
  };

  template <Node N>
  std::uint64_t lock(N& node) {
    const std::uint64_t ticket = node.fetch_add(words_->tickets, 1);
    while (std::atomic_ref(words_->serving).load(std::memory_order_acquire) != ticket) node.idle();
    return ticket;
  }
  void unlock(std::uint64_t ticket) { std::atomic_ref(words_->serving).store(ticket + 1, std::memory_order_release); }

  Words* words_;
  Entry* entries_;
  std::uint64_t capacity_;
};

}  // namespace verbscope
