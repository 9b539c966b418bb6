#include "nic_sim/time/engine.hpp"

#include <algorithm>
#include <cstddef>

namespace verbscope::sim {

namespace {

constexpr std::uint64_t kMany = 1024;          // events: with more, their objects do not stay in the caches
constexpr std::uint64_t kAhead = 8;            // buckets, a nanosecond: memory latency is that of about ten events
constexpr std::uint64_t kObjectBytes = 1000;   // that an event accesses of a QP, the largest object
constexpr std::uint64_t kArgumentBytes = 160;  // of a packet: its header and the first bytes of its payload

}  // namespace

void Engine::put_far(std::int64_t time, Action action, void* object, std::uint64_t argument) {
  far_.push({time, action, object, argument, far_order_++});
  first_far_ = far_.top().time;
}

void Engine::cancel_far(Action action, const void* object, std::uint64_t argument) {
  far_.remove([=](const FarEvent& event) {
    return event.action == action && event.object == object && event.argument == argument;
  });
  first_far_ = far_.empty() ? kNever : far_.top().time;
}

// Moves the far events that the wheel now reaches into it. This happens before any near event is scheduled for their
// buckets, so that events of equal time keep their order.
void Engine::bring_near() {
  while (first_far_ < far_from_) {
    const FarEvent event = far_.top();
    far_.pop();
    first_far_ = far_.empty() ? kNever : far_.top().time;
    put(event.time, event.action, event.object, event.argument);
  }
}

void Engine::put_in_more_room(std::int64_t time, Action action, void* object, std::uint64_t argument) {
  const auto begin = static_cast<std::uint32_t>(events_.size());
  events_.resize(std::max<std::size_t>(2 * events_.size(), 16));
  free_ = begin;
  for (std::uint32_t i = begin; i + 1 < events_.size(); ++i) events_[i].next = i + 1;
  events_.back().next = kNone;
  many_ = events_.size() > kMany;
  put(time, action, object, argument);
}

// Inserts the event behind those of its time. If that place is far from the first event, appends it and marks the
// bucket as unsorted; but not in the current bucket, which would be sorted again and again.
void Engine::put_before_others(std::uint64_t place, std::uint32_t index) {
  Bucket& bucket = wheel_[place];
  Event& event = events_[index];
  if (!unsorted_.has(place)) {
    std::uint32_t* link = &bucket.first;
    std::size_t left = place == place_of(now_) ? events_.size() : kFew;
    for (; left > 0 && !later(events_[*link], event); --left) link = &events_[*link].next;
    if (left > 0) {
      event.next = *link;
      *link = index;
      return;
    }
    unsorted_.set(place);
  }
  events_[bucket.last].next = index;
  bucket.last = index;
}

// The list has events of equal time in the order of scheduling: the sort key is the time, then the position.
void Engine::sort(std::uint64_t place) {
  Bucket& bucket = wheel_[place];
  const std::uint32_t begin = events_[bucket.first].time & ~(kBucketPicos - 1);
  sorted_.clear();
  keys_.clear();
  for (std::uint32_t i = bucket.first; i != kNone; i = events_[i].next) {
    keys_.push_back(std::uint64_t{events_[i].time - begin} << 32 | sorted_.size());
    sorted_.push_back(i);
  }
  std::sort(keys_.begin(), keys_.end());
  std::uint32_t* link = &bucket.first;
  for (const std::uint64_t key : keys_) {
    bucket.last = *link = sorted_[static_cast<std::uint32_t>(key)];
    link = &events_[bucket.last].next;
  }
  *link = kNone;
  unsorted_.clear(place);
}

// With many nodes, the objects of an event have left the processor's caches since their last use. This prefetches them
// some buckets ahead.
void Engine::fetch_ahead(std::uint64_t place) {
  if (ahead_of_ != place) {
    ahead_of_ = place;
    ahead_ = wheel_[(place + kAhead) % kBuckets].first;
  }
  if (ahead_ == kNone) return;
  const Event& event = events_[ahead_];
  prefetch(event.object, kObjectBytes);
  prefetch(event.argument, kArgumentBytes);  // often the address of a packet
  ahead_ = event.next;
}

std::uint64_t Engine::run(std::uint64_t limit) {
  std::uint64_t done = 0;
  for (; done < limit; ++done) {
    if (near_events_ == 0) [[unlikely]] {
      if (first_far_ >= horizon_) break;
      set_now(first_far_);
    }
    const Occupied first = first_occupied();
    const std::uint64_t place = first.place();
    const std::uint32_t index = first_of(place);
    const std::int64_t time = time_of(events_[index]);
    if (time >= stop_at_) [[unlikely]] {
      if (time >= horizon_) break;
      set_now(time);
    }
    Event& event = events_[index];
    if (many_) [[unlikely]]
      fetch_ahead(place);
    const Action action = event.action;
    void* const object = event.object;
    const std::uint64_t argument = event.argument;
    wheel_[place].first = event.next;
    if (event.next == kNone) occupied_.words[first.index] ^= first.word & -first.word;
    event.next = free_;
    free_ = index;
    --near_events_;
    now_ = time;
    action(object, argument);
  }
  events_run_ += done;
  return done;
}

}  // namespace verbscope::sim
