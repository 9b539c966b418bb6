// Three variants of looking up many keys in a structure: one by one, in groups, and interleaved.
//
// Interleaved look-ups hide each other's memory latency. Each is a stackless coroutine that prefetches a line, switches
// to the others, and reads the line at its next turn (G-Opt of Kalia, Zhou, Kaminsky and Andersen, "Raising the Bar for
// Using GPUs in Software Packet Processing", NSDI 2015, section 3.2: prefetch, save, switch). The compiler turns the
// coroutine into a state machine and its saved variables, which G-Opt generates from source code.
#pragma once

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <span>
#include <utility>

#include "common/error.hpp"
#include "machine/node.hpp"

namespace verbscope::lookups {

// Maximum number of look-ups at the same time. More gain nothing: a core has ten to sixteen outstanding misses.
inline constexpr std::size_t kMaxBatch = 32;

// Storage for a coroutine's frame, in an array on the stack, so that nothing is allocated.
struct alignas(64) FrameSlot {
  std::array<std::byte, 512> bytes;
};

// A coroutine that takes look-ups of a batch one after the other until none is left. Its first parameter is the
// FrameSlot& for its frame. A call runs it to its first switch. No exception may leave it.
class Lane {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct promise_type {
    // The lane to resume when this one switches or ends. For the last of a round, no lane: resume() returns.
    std::coroutine_handle<> next = std::noop_coroutine();
    bool* ended = nullptr;  // set when the lane ends

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

  // Null if the frame does not fit into its slot.
  Handle handle;

 private:
  explicit Lane(Handle h) : handle(h) {}
};

// Awaited by a lane before it reads memory that is probably not cached: `co_await Fetched{node, place}`.
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

// The look-ups of a batch. Lanes take them in order.
template <class Key, class Result>
struct Batch {
  std::span<const Key> keys;
  Result* results;  // one per key
  std::size_t taken = 0;

  bool left() const { return taken < keys.size(); }
  std::size_t take() { return taken++; }
};

// Destroys the lanes that have ended and links the others into a round, in order. Returns the number of the others.
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

// Runs `lanes` (1 to B) lanes in turn until all have ended. `make_lane` makes one: it calls the coroutine with the
// given FrameSlot&. Throws Error if a frame does not fit, before any lane has switched.
//
// Lanes of a round resume each other directly if the compiler turns such calls into jumps. If it does not (-O0), the
// stack grows by one round of calls at most, because the last lane returns.
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

enum class Variant {
  baseline,     // one key after the other
  group,        // stage by stage over a batch: prefetch for all, then read for all
  interleaved,  // lanes that switch at each access
};

inline constexpr std::array kVariants = {Variant::baseline, Variant::group, Variant::interleaved};

constexpr const char* to_string(Variant variant) {
  return variant == Variant::baseline ? "baseline" : variant == Variant::group ? "group" : "interleaved";
}

// Looks up `keys` in a structure, `batch` (1 to kMaxBatch) at a time if the variant uses batches. results[i] belongs
// to keys[i] in every variant. A structure has the types Key and Result and, for any Node,
//   Result find(node, key): the baseline;
//   void find_group(node, keys, results): at most kMaxBatch keys, stage by stage;
//   static Lane find_lane(FrameSlot&, node, structure, Batch<Key, Result>&): takes keys until none is left.
// Each calls node.prefetch and node.load for the accesses that are expected to miss the cache, and for no others.
template <Node N, class Structure>
void look_up(N& node, const Structure& structure, Variant variant, std::size_t batch,
             std::span<const typename Structure::Key> keys, typename Structure::Result* results) {
  if (variant == Variant::baseline) {
    for (std::size_t i = 0; i < keys.size(); ++i) results[i] = structure.find(node, keys[i]);
  } else if (variant == Variant::group) {
    for (std::size_t i = 0; i < keys.size(); i += batch) {
      structure.find_group(node, keys.subspan(i, std::min(batch, keys.size() - i)), results + i);
    }
  } else {
    Batch<typename Structure::Key, typename Structure::Result> all{keys, results};
    interleave<kMaxBatch>(std::min(batch, keys.size()),
                          [&](FrameSlot& slot) { return Structure::find_lane(slot, node, structure, all); });
  }
}

}  // namespace verbscope::lookups
