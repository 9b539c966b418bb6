// The discrete-event engine: a clock in integer picoseconds and a queue of actions ordered by time, ties by the order
// in which they were scheduled. Near events wait unsorted in the buckets of a wheel; a bucket is sorted when its time
// has come. Far ones wait in a heap until the wheel reaches them. None of this can be seen: the order is the same.
// Scheduling costs the same however many events there are. Memory is what is outstanding, never what has passed.
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
  static constexpr int kBucketShift = 12;  // 4.1 ns a bucket: one or two events in a busy simulation of few nodes
  static constexpr std::uint64_t kBuckets = 1024;
  static constexpr std::uint64_t kWords = kBuckets / 64;

  struct Event {
    std::int64_t time;
    std::uint64_t order;
    Action action;
    void* object;
    std::uint64_t argument;
  };
  struct Bucket {
    std::vector<Event> events;
    std::int64_t earliest = kNever;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time != b.time ? a.time > b.time : a.order > b.order;
    }
  };

  static std::int64_t bucket_number(std::int64_t time) { return time >> kBucketShift; }

  void insert_near(const Event& event);
  void turn_wheel();
  void take_up_bucket();
  void fetch_ahead() const;
  std::int64_t earliest() const;
  std::int64_t wheel_end() const { return wheel_start_ + static_cast<std::int64_t>(kBuckets); }

  std::int64_t now_ = 0;
  std::int64_t next_time_ = kNever;
  std::int64_t wheel_start_ = 0;  // bucket number where the wheel's cover begins: never after now
  std::uint64_t order_ = 0;
  std::uint64_t events_run_ = 0;
  std::uint64_t near_events_ = 0;  // in the wheel
  std::array<Bucket, kBuckets> wheel_{};
  std::array<std::uint64_t, kWords> occupied_{};
  std::vector<Event> due_;  // the rest of bucket `wheel_start_` once its time has come, the next one last
  std::priority_queue<Event, std::vector<Event>, Later> far_;
};

}  // namespace verbscope::sim
