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
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct promise_type {
    // The lane that goes on when this one switches or ends; of the last of a round, nothing: resume() returns.
    std::coroutine_handle<> next = std::noop_coroutine();
    bool* ended = nullptr;  // is set when the lane ends

    struct LastSwitch {
      bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(Handle lane) const noexcept {
        if (lane.promise().ended) *lane.promise().ended = true;
        return lane.promise().next;
      }
      void await_resume() const noexcept {}
    };

    template <class... Rest>
    static void* operator new(std::size_t bytes, FrameSlot& slot, Rest&&...) noexcept {
      return bytes <= sizeof slot.bytes ? slot.bytes.data() : nullptr;
    }
    static void operator delete(void*, std::size_t) noexcept {}
    static Lane get_return_object_on_allocation_failure() noexcept { return Lane(nullptr); }
    Lane get_return_object() noexcept { return Lane(Handle::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    LastSwitch final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };

  // Null when the frame does not fit into its slot.
  Handle handle;

 private:
  explicit Lane(Handle h) : handle(h) {}
};

// What a lane awaits before it reads memory that is probably not in the cache: `co_await Fetched{node, place}`.
template <Node N>
struct Fetched {
  N& node;
  const void* place;

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(Lane::Handle lane) const noexcept {
    node.prefetch(place);
    return lane.promise().next;
  }
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

// Destroys the lanes that have ended and links the others to a round, in their order. Returns how many those are;
// `ended` is set when one of them ends.
inline std::size_t leave_out_ended(std::span<Lane::Handle> lanes, bool& ended) {
  std::size_t left = 0;
  for (const Lane::Handle lane : lanes) {
    if (lane.done()) {
      lane.destroy();
    } else {
      lane.promise().ended = &ended;
      lanes[left++] = lane;
    }
  }
  for (std::size_t i = 0; i < left; ++i) {
    lanes[i].promise().next = i + 1 < left ? std::coroutine_handle<>(lanes[i + 1]) : std::noop_coroutine();
  }
  return left;
}

// Runs `lanes` (1 to B) lanes in turn until all have ended. `lane` makes one: it calls the coroutine with the
// FrameSlot& that it is given. Throws Error when a frame does not fit, before a lane has switched.
//
// Lanes of a round resume each other, where the compiler makes jumps of such calls without a way back through the loop
// here; where it does not (-O0), the stack holds a round of calls at most, as the last lane returns.
template <std::size_t B, class MakeLane>
void interleave(std::size_t lanes, MakeLane&& make_lane) {
  std::array<FrameSlot, B> slots;  // not initialised
  std::array<Lane::Handle, B> running;
  std::size_t count = 0;
  for (std::size_t i = 0; i < lanes; ++i) {
    running[i] = make_lane(slots[i]).handle;
    if (!running[i]) fail("interleave: the frame of a look-up is larger than {} bytes", sizeof(FrameSlot));
    ++count;
  }
  bool ended = true;
  while (count > 0) {
    if (ended) {
      ended = false;
      count = leave_out_ended(std::span(running).first(count), ended);
    } else {
      running[0].resume();
    }
  }
}

}  // namespace verbscope::lookups
