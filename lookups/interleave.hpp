// Look-ups that hide the latency of memory from each other: each is a stackless coroutine that asks for a line, lets
// the others go on, and reads the line when its turn comes again (G-Opt of Kalia, Zhou, Kaminsky and Andersen, "Raising
// the Bar for Using GPUs in Software Packet Processing", NSDI 2015, section 3.2: prefetch, save, switch). The compiler
// makes of the coroutine what G-Opt generates from the source: the state machine and its saved variables.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <span>
#include <utility>

#include "common/error.hpp"
#include "machine/node.hpp"

namespace verbscope::lookups {

// The most look-ups that are under way at once. A core has ten to sixteen misses outstanding: more gains nothing.
inline constexpr std::size_t kMostBatch = 32;

// The place of a coroutine's frame. It lies in an array on the stack: nothing is allocated.
struct alignas(64) FrameSlot {
  std::array<std::byte, 512> bytes;
};

// A coroutine whose first parameter is the FrameSlot& that its frame lies in, and that takes look-ups of a batch one
// after the other until none is left. It runs up to its first switch when it is called. No exception may leave it.
class Lane {
 public:
  struct promise_type {
    template <class... Rest>
    static void* operator new(std::size_t bytes, FrameSlot& slot, Rest&&...) noexcept {
      return bytes <= sizeof slot.bytes ? slot.bytes.data() : nullptr;
    }
    static void operator delete(void*, std::size_t) noexcept {}
    static Lane get_return_object_on_allocation_failure() noexcept { return Lane(nullptr); }
    Lane get_return_object() noexcept { return Lane(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };

  // Null when the frame does not fit into its slot.
  std::coroutine_handle<promise_type> handle;

 private:
  explicit Lane(std::coroutine_handle<promise_type> h) : handle(h) {}
};

// What a lane awaits before it reads memory that is probably not in the cache: `co_await Fetched{node, place}`.
template <Node N>
struct Fetched {
  N& node;
  const void* place;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) const noexcept { node.prefetch(place); }
  void await_resume() const noexcept { node.load(place); }
};
template <class N>
Fetched(N&, const void*) -> Fetched<N>;

// The look-ups of a batch, which lanes take in order.
template <class Key, class Result>
struct Batch {
  std::span<const Key> keys;
  Result* results;  // as many
  std::size_t taken = 0;

  bool left() const { return taken < keys.size(); }
  std::size_t take() { return taken++; }
};

// Runs `lanes` (1 to B) lanes in turn until all have ended. `lane` makes one: it calls the coroutine with the
// FrameSlot& that it is given. Throws Error when a frame does not fit, before a lane has switched.
template <std::size_t B, class MakeLane>
void interleave(std::size_t lanes, MakeLane&& make_lane) {
  std::array<FrameSlot, B> slots;  // not initialised
  std::array<std::coroutine_handle<>, B> running;
  std::size_t count = 0;
  for (std::size_t i = 0; i < lanes; ++i) {
    const auto handle = make_lane(slots[i]).handle;
    if (!handle) fail("interleave: the frame of a look-up is larger than {} bytes", sizeof(FrameSlot));
    running[count++] = handle;
  }
  while (count > 0) {
    for (std::size_t i = 0; i < count;) {
      if (running[i].done()) {
        running[i].destroy();
        running[i] = running[--count];
      } else {
        running[i++].resume();
      }
    }
  }
}

}  // namespace verbscope::lookups
