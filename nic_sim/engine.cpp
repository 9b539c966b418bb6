#include "nic_sim/engine.hpp"

#include <algorithm>
#include <cstddef>

#include "nic_sim/prefetch.hpp"

namespace verbscope::sim {

namespace {

constexpr std::uint64_t kMany = 1024;          // events: their objects do not stay in the processor's caches
constexpr std::uint64_t kObjectBytes = 1000;   // what an event looks at in a QP, the largest object
constexpr std::uint64_t kArgumentBytes = 160;  // in front of a packet's data

}  // namespace

void Engine::put_far(std::int64_t time, Action action, void* object, std::uint64_t argument) {
  far_.push({{time, action, object, argument}, far_order_++});
  first_far_ = far_.top().event.time;
}

// Puts those far events into the wheel that it reaches now: before any near one is scheduled for their buckets, so that
// ties keep their order.
void Engine::bring_near() {
  while (first_far_ < far_from_) {
    put(far_.top().event);
    far_.pop();
    first_far_ = far_.empty() ? kNever : far_.top().event.time;
  }
}

void Engine::make_room(Bucket& bucket) {
  if (bucket.first > bucket.room / 2) {  // over those that have run
    std::copy(&bucket.events[bucket.first], &bucket.events[bucket.end], &bucket.events[0]);
    bucket.end -= bucket.first;
    bucket.first = 0;
    return;
  }
  const std::uint32_t room = std::max(2 * bucket.room, 2u);
  auto events = std::make_unique_for_overwrite<Event[]>(room);
  std::copy_n(bucket.events.get(), bucket.end, events.get());
  bucket.events = std::move(events);
  bucket.room = room;
}

void Engine::put_in_more_room(std::int64_t time, Action action, void* object, std::uint64_t argument) {
  make_room(wheel_[place_of(time)]);
  put({time, action, object, argument});
}

// A bucket of few stays in order, one of many is sorted when it is next.
void Engine::put_before_others(std::int64_t time, Action action, void* object, std::uint64_t argument) {
  Bucket& bucket = wheel_[place_of(time)];
  std::uint32_t at = bucket.end++;
  if (bucket.first == 0 && at >= kFew) {
    bucket.in_order = false;
  } else {
    for (; at > bucket.first && bucket.events[at - 1].time > time; --at) bucket.events[at] = bucket.events[at - 1];
  }
  bucket.events[at] = {time, action, object, argument};
  ++near_events_;
}

// Ties are in the order of scheduling as they stand there.
void Engine::sort(Bucket& bucket) {
  std::stable_sort(&bucket.events[bucket.first], &bucket.events[bucket.end],
                   [](const Event& a, const Event& b) { return a.time < b.time; });
  bucket.in_order = true;
}

// With many nodes the objects of an event have left the processor's caches since they were looked at last: asked for a
// bucket ahead, they come while the events before it run.
void Engine::fetch_ahead(const Event& event) {
  prefetch(event.object, kObjectBytes);
  prefetch(event.argument, kArgumentBytes);  // often a packet
}

std::size_t Engine::places() const {
  std::size_t sum = far_.size();
  for (const Bucket& bucket : wheel_) sum += bucket.room;
  return sum;
}

bool Engine::step() {
  if (near_events_ == 0) {
    if (first_far_ == kNever) return false;
    set_now(first_far_);
  }
  const std::uint64_t place = first_place();
  Bucket& bucket = wheel_[place];
  if (!bucket.in_order) sort(bucket);
  if (near_events_ > kMany) {
    const Bucket& next = wheel_[(place + 1) % kBuckets];
    if (bucket.first < next.end) fetch_ahead(next.events[bucket.first]);
  }
  const Event event = bucket.events[bucket.first++];
  if (bucket.first == bucket.end) {
    bucket.first = bucket.end = 0;
    occupied_[place / 64] &= ~(std::uint64_t{1} << (place % 64));
  }
  --near_events_;
  ++events_run_;
  set_now(event.time);
  event.action(event.object, event.argument);
  return true;
}

}  // namespace verbscope::sim
