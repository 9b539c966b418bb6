// The discrete-event engine: a clock in integer picoseconds, and a queue of events ordered by time; events of equal
// time run in the order of scheduling. Near events are in a wheel of buckets, which are linked lists in one array;
// freed entries are reused first, so that they stay in the processor's caches. A bucket is short: a few events are kept
// in order, many are sorted when the bucket is next. Far events wait in a heap. Memory use grows with outstanding
// events, not with simulated time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "common/units.hpp"
#include "wire/pcie.hpp"

namespace verbscope::sim {

// Prefetches the cache lines of [address, address + bytes). The address need not be valid.
inline void prefetch(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0) return;
  for (std::uint64_t offset = 0; offset < bytes; offset += kCacheLine.value) {
    __builtin_prefetch(reinterpret_cast<const void*>(address + offset));
  }
  __builtin_prefetch(reinterpret_cast<const void*>(address + bytes - 1));
}
inline void prefetch(const void* begin, std::uint64_t bytes) {
  prefetch(reinterpret_cast<std::uint64_t>(begin), bytes);
}

class Engine {
 public:
  // The action of an event: a function of an object and a number, so that scheduling allocates nothing.
  using Action = void (*)(void* object, std::uint64_t argument);

  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  Picos now() const { return Picos(now_); }

  // A time in the past counts as now. Inlined into each caller, which saves over 1 % of the instructions of
  // tests/perf/all_active.hpp.
  [[gnu::always_inline]] void schedule(Picos when, Action action, void* object, std::uint64_t argument = 0) {
    const std::int64_t time = when.count() > now_ ? when.count() : now_;
    if (time < far_from_) {
      put(time, action, object, argument);
    } else {
      put_far(time, action, object, argument);
    }
  }

  // Removes an event that is microseconds away or more; does nothing to a nearer one. For long timers that are stopped:
  // a simulation in which nothing else happens would otherwise go on until the timer's time.
  void cancel_far(Action action, const void* object, std::uint64_t argument);

  // Time of the next event; kNever if there is none.
  std::int64_t next_time() {
    if (near_events_ == 0) return first_far_;
    return time_of(events_[first_of(first_occupied().place())]);
  }

  // Runs the next event. Returns false if there is none before the horizon.
  bool step() { return run(1) == 1; }

  // Runs up to `limit` events before the horizon. Returns their number.
  [[gnu::hot, gnu::noinline]] std::uint64_t run(std::uint64_t limit);

  // Events from the horizon on must not run yet: other nodes may still affect them.
  std::int64_t horizon() const { return horizon_; }
  void set_horizon(std::int64_t horizon) {
    horizon_ = horizon;
    stop_at_ = std::min(horizon_, turn_at_);
  }

  // Advances the clock to `when`. Precondition: no event is due before it.
  void advance_to(Picos when) {
    if (when.count() > now_) set_now(when.count());
  }

  std::uint64_t events_run() const { return events_run_; }
  // Number of events that the allocated memory can hold: the largest number outstanding so far.
  std::size_t places() const { return events_.size() + far_.size(); }

 private:
  static constexpr int kBucketShift = 7;  // 128 ps a bucket
  static constexpr std::uint32_t kBucketPicos = 1 << kBucketShift;
  static constexpr std::uint64_t kBuckets = 16384;
  static constexpr std::uint64_t kTurn = 64;  // buckets by which the wheel advances at a time
  static constexpr std::size_t kFew = 16;     // events of a bucket that are searched to keep it in order
  static constexpr std::uint32_t kNone = ~0u;

  // Half of a cache line. The low bits of the time suffice, because the wheel is shorter than 2^32 ps.
  struct alignas(32) Event {
    Action action;
    void* object;
    std::uint64_t argument;
    std::uint32_t time;
    std::uint32_t next;  // next event of the bucket, or next free entry
  };
  struct FarEvent {
    std::int64_t time;
    Action action;
    void* object;
    std::uint64_t argument;
    std::uint64_t order;
  };
  struct Later {
    bool operator()(const FarEvent& a, const FarEvent& b) const {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };
  struct Bucket {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };
  // One bit per bucket.
  struct Bits {
    std::array<std::uint64_t, kBuckets / 64> words{};
    bool has(std::uint64_t place) const { return (words[place / 64] >> (place % 64) & 1) != 0; }
    void set(std::uint64_t place) { words[place / 64] |= std::uint64_t{1} << (place % 64); }
    void clear(std::uint64_t place) { words[place / 64] &= ~(std::uint64_t{1} << (place % 64)); }
  };

  static std::int64_t bucket_number(std::int64_t time) { return time >> kBucketShift; }
  static std::uint64_t place_of(std::int64_t time) {
    return static_cast<std::uint64_t>(bucket_number(time)) % kBuckets;
  }
  // True if `a` is later than `b`. Both are of one bucket.
  static bool later(const Event& a, const Event& b) { return static_cast<std::int32_t>(a.time - b.time) > 0; }
  std::int64_t time_of(const Event& event) const {
    return now_ + static_cast<std::int64_t>(event.time - static_cast<std::uint32_t>(now_));
  }

  // Most events are the last of their bucket. Other cases are separate functions, so that this one saves no registers.
  [[gnu::always_inline]] void put(std::int64_t time, Action action, void* object, std::uint64_t argument) {
    const std::uint32_t index = free_;
    if (index == kNone) return put_in_more_room(time, action, object, argument);
    Event& event = events_[index];
    free_ = event.next;
    event.action = action;
    event.object = object;
    event.argument = argument;
    event.time = static_cast<std::uint32_t>(time);
    event.next = kNone;
    ++near_events_;
    const std::uint64_t place = place_of(time);
    Bucket& bucket = wheel_[place];
    if (bucket.first == kNone) {
      bucket.first = bucket.last = index;
      occupied_.set(place);
      return;
    }
    Event& last = events_[bucket.last];
    if (later(last, event)) return put_before_others(place, index);
    last.next = bucket.last = index;
  }
  // The first bucket with events: the index of its word in the bits, and that word without earlier buckets.
  struct Occupied {
    std::uint64_t index;
    std::uint64_t word;
    std::uint64_t place() const { return index * 64 + static_cast<std::uint64_t>(std::countr_zero(word)); }
  };
  // Precondition: there is a near event.
  Occupied first_occupied() const {
    const std::uint64_t begin = place_of(now_);
    std::uint64_t index = begin / 64;
    std::uint64_t word = occupied_.words[index] & (~std::uint64_t{0} << (begin % 64));
    while (word == 0) {
      index = (index + 1) % occupied_.words.size();
      word = occupied_.words[index];
    }
    return {index, word};
  }
  // The first event of a bucket that has events.
  std::uint32_t first_of(std::uint64_t place) {
    const std::uint32_t index = wheel_[place].first;
    if (events_[index].next == kNone || !unsorted_.has(place)) [[likely]]
      return index;
    sort(place);
    return wheel_[place].first;
  }
  void set_now(std::int64_t time) {
    now_ = time;
    if (time >= turn_at_) [[unlikely]]
      turn();
  }
  // Advances the wheel, which then takes in far events.
  [[gnu::noinline]] void turn() {
    const std::int64_t begin = bucket_number(now_) & ~static_cast<std::int64_t>(kTurn - 1);
    turn_at_ = (begin + static_cast<std::int64_t>(kTurn)) << kBucketShift;
    far_from_ = (begin + static_cast<std::int64_t>(kBuckets)) << kBucketShift;
    stop_at_ = std::min(horizon_, turn_at_);
    if (first_far_ < far_from_) bring_near();
  }
  // Rare, and kept apart from the frequent code.
  [[gnu::cold]] void put_far(std::int64_t time, Action action, void* object, std::uint64_t argument);
  [[gnu::cold]] void put_in_more_room(std::int64_t time, Action action, void* object, std::uint64_t argument);
  [[gnu::cold]] void bring_near();
  [[gnu::noinline]] void sort(std::uint64_t place);
  [[gnu::noinline]] void put_before_others(std::uint64_t place, std::uint32_t index);
  [[gnu::noinline]] void fetch_ahead(std::uint64_t place);

  std::int64_t now_ = 0;
  std::int64_t horizon_ = kNever;
  std::int64_t turn_at_ = static_cast<std::int64_t>(kTurn) << kBucketShift;
  std::int64_t stop_at_ = turn_at_;  // the smaller of horizon_ and turn_at_, where run() must do more than run events
  std::int64_t far_from_ = static_cast<std::int64_t>(kBuckets) << kBucketShift;  // from there on the wheel has no place
  std::int64_t first_far_ = kNever;
  std::uint64_t near_events_ = 0;
  std::uint32_t free_ = kNone;         // the entry that was freed last
  bool many_ = false;                  // the objects of all events no longer fit into the processor's caches
  std::uint32_t ahead_ = kNone;        // the event to be prefetched next
  std::uint64_t ahead_of_ = kBuckets;  // the bucket whose events run meanwhile
  std::vector<Event> events_;
  Bits occupied_;
  Bits unsorted_;
  std::array<Bucket, kBuckets> wheel_;
  struct FarEvents : std::priority_queue<FarEvent, std::vector<FarEvent>, Later> {
    void remove(const auto& is_one) {
      std::erase_if(c, is_one);
      std::make_heap(c.begin(), c.end(), comp);
    }
  };
  FarEvents far_;
  std::uint64_t far_order_ = 0;
  std::uint64_t events_run_ = 0;
  std::vector<std::uint32_t> sorted_;  // members to reuse their memory
  std::vector<std::uint64_t> keys_;
};

}  // namespace verbscope::sim
