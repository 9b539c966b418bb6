// The discrete-event engine: a clock in integer picoseconds and a queue of actions ordered by time, ties by the order
// in which they were scheduled. Near events stand in the buckets of a wheel. A bucket is so short that few events meet
// there, which are kept in order; many are sorted when the bucket is next. Far ones wait in a heap. None of this can be
// seen: the order is the same. Memory is what is outstanding, never what has passed.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <queue>
#include <vector>

#include "common/units.hpp"

namespace verbscope::sim {

class Engine {
 public:
  // What happens at an event: a plain function of the object and a number, so that scheduling allocates nothing.
  using Action = void (*)(void* object, std::uint64_t argument);

  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  Picos now() const { return Picos(now_); }

  // `when` in the past counts as now.
  void schedule(Picos when, Action action, void* object, std::uint64_t argument = 0) {
    const std::int64_t time = when.count() > now_ ? when.count() : now_;
    if (time < far_from_) {
      put({time, action, object, argument});
    } else {
      put_far(time, action, object, argument);
    }
  }

  // The time of the next event, kNever when there is none.
  std::int64_t next_time() {
    if (near_events_ == 0) return first_far_;
    Bucket& bucket = wheel_[first_place()];
    if (!bucket.in_order) sort(bucket);
    return bucket.events[bucket.first].time;
  }

  // Runs the next event; false when there is none.
  bool step();

  // Moves the clock on to `when`; no event may be due before it.
  void advance_to(Picos when) {
    if (when.count() > now_) set_now(when.count());
  }

  std::uint64_t events_run() const { return events_run_; }
  // Events that there is memory for: what was outstanding at most, in each part of the wheel.
  std::size_t places() const;

 private:
  static constexpr int kBucketShift = 12;  // 4.1 ns a bucket
  static constexpr std::uint64_t kBuckets = 512;
  static constexpr std::uint64_t kWords = kBuckets / 64;
  static constexpr std::uint32_t kFew = 16;  // events of a bucket that are kept in order

  struct Event {
    std::int64_t time;
    Action action;
    void* object;
    std::uint64_t argument;
  };
  struct FarEvent {
    Event event;
    std::uint64_t order;
  };
  struct Later {
    bool operator()(const FarEvent& a, const FarEvent& b) const {
      return a.event.time != b.event.time ? a.event.time > b.event.time : a.order > b.order;
    }
  };
  // Those from `first` to `end` wait; those before have run, and when there are any the others are in order.
  struct Bucket {
    std::unique_ptr<Event[]> events;
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    std::uint32_t room = 0;
    bool in_order = true;
  };

  static std::int64_t bucket_number(std::int64_t time) { return time >> kBucketShift; }
  static std::uint64_t place_of(std::int64_t time) {
    return static_cast<std::uint64_t>(bucket_number(time)) % kBuckets;
  }

  // By value: an event stays in registers until it is in its place. One that is copied from memory just written holds
  // up the processor, which cannot read in one piece what it has not yet stored in several. Most events are the last of
  // their bucket; what the others need is elsewhere, so that these save no registers.
  void put(Event event) {
    const std::uint64_t place = place_of(event.time);
    Bucket& bucket = wheel_[place];
    const std::uint32_t at = bucket.end;
    if (at == bucket.room) return put_in_more_room(event.time, event.action, event.object, event.argument);
    Event* const events = bucket.events.get();
    if (at > bucket.first && events[at - 1].time > event.time)
      return put_before_others(event.time, event.action, event.object, event.argument);
    events[at] = event;
    bucket.end = at + 1;
    occupied_[place / 64] |= std::uint64_t{1} << (place % 64);
    ++near_events_;
  }
  // The place of the first bucket that has events; there is one.
  std::uint64_t first_place() const {
    const std::uint64_t begin = place_of(now_);
    std::uint64_t index = begin / 64;
    std::uint64_t word = occupied_[index] & (~std::uint64_t{0} << (begin % 64));
    while (word == 0) {
      index = (index + 1) % kWords;
      word = occupied_[index];
    }
    return index * 64 + static_cast<std::uint64_t>(std::countr_zero(word));
  }
  void set_now(std::int64_t time) {
    now_ = time;
    far_from_ = (bucket_number(time) + static_cast<std::int64_t>(kBuckets)) << kBucketShift;
    if (first_far_ < far_from_) bring_near();
  }
  // Rare, and kept out of the way of what is not.
  [[gnu::cold]] void put_far(std::int64_t time, Action action, void* object, std::uint64_t argument);
  [[gnu::cold]] void put_in_more_room(std::int64_t time, Action action, void* object, std::uint64_t argument);
  [[gnu::noinline]] void put_before_others(std::int64_t time, Action action, void* object, std::uint64_t argument);
  [[gnu::cold]] void bring_near();
  [[gnu::cold]] static void make_room(Bucket& bucket);
  [[gnu::cold]] static void sort(Bucket& bucket);
  [[gnu::noinline]] static void fetch_ahead(const Event& event);

  std::int64_t now_ = 0;
  std::int64_t far_from_ = static_cast<std::int64_t>(kBuckets) << kBucketShift;  // from there on the wheel has no place
  std::int64_t first_far_ = kNever;
  std::uint64_t near_events_ = 0;
  std::uint64_t events_run_ = 0;
  std::array<std::uint64_t, kWords> occupied_{};  // a bit for each bucket
  std::array<Bucket, kBuckets> wheel_;
  std::priority_queue<FarEvent, std::vector<FarEvent>, Later> far_;
  std::uint64_t far_order_ = 0;
};

}  // namespace verbscope::sim
