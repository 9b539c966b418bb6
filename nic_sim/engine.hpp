// The discrete-event engine: a clock in integer picoseconds and a queue of actions ordered by time, ties by the order
// in which they were scheduled. Near events wait unsorted in the buckets of a wheel; a bucket is sorted when it is
// next. Those that were far wait in a heap. None of this can be seen: the order is the same. Scheduling costs the same
// however many events there are. Memory is what is outstanding, never what has passed.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
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
  void schedule(Picos when, Action action, void* object, std::uint64_t argument = 0);

  // The time of the next event, kNever when there is none.
  std::int64_t next_time() const { return next_time_; }

  // Runs the next event. There must be one.
  void step();

  // Moves the clock on to `when`; no event may be due before it.
  void advance_to(Picos when) { now_ = when.count() > now_ ? when.count() : now_; }

  std::uint64_t events_run() const { return events_run_; }
  // Events that there is memory for: what was outstanding at most, in each part of the wheel.
  std::size_t places() const;

 private:
  static constexpr int kBucketShift = 13;  // 8.2 ns a bucket: a few events in a busy simulation of few nodes
  static constexpr std::uint64_t kBuckets = 1024;
  static constexpr std::uint64_t kWords = kBuckets / 64;

  struct Event {
    std::int64_t time;
    std::uint64_t order;
    Action action;
    void* object;
    std::uint64_t argument;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  static std::int64_t bucket_number(std::int64_t time) { return time >> kBucketShift; }

  static std::uint64_t place_of(std::int64_t bucket) { return static_cast<std::uint64_t>(bucket) % kBuckets; }

  void put_away(const Event& event);
  void put_back_due();
  std::int64_t first_of_wheel() const;
  void take_up();
  void fetch_ahead() const;

  std::int64_t now_ = 0;
  std::int64_t next_time_ = kNever;
  std::uint64_t order_ = 0;
  std::uint64_t events_run_ = 0;
  // The events of the next bucket that has any, the next one last; empty when nothing is outstanding.
  std::vector<Event> due_;
  std::int64_t due_bucket_ = kNever;
  // Those of the buckets behind it, up to kBuckets from now.
  std::array<std::vector<Event>, kBuckets> wheel_;
  std::array<std::uint64_t, kWords> occupied_{};
  std::uint64_t near_events_ = 0;
  // Those that were further away when they were scheduled.
  std::priority_queue<Event, std::vector<Event>, Later> far_;
};

}  // namespace verbscope::sim
