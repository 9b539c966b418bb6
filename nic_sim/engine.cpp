#include "nic_sim/engine.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace verbscope::sim {

Engine::Event* Engine::allocate() {
  if (free_ == nullptr) return &nodes_.emplace_back();
  Event* event = free_;
  free_ = event->next;
  return event;
}

void Engine::insert_near(Event* event) {
  const std::uint64_t index = static_cast<std::uint64_t>(bucket_number(event->time)) % kBuckets;
  Bucket& bucket = wheel_[index];
  occupied_[index / 64] |= std::uint64_t{1} << (index % 64);
  ++near_events_;
  event->next = bucket.first;
  bucket.first = event;
  bucket.earliest = std::min(bucket.earliest, event->time);
}

void Engine::schedule(Picos when, Action action, void* object, std::uint64_t argument) {
  Event* event = allocate();
  const std::int64_t time = when.count() > now_ ? when.count() : now_;
  *event = Event{time, order_++, nullptr, action, object, argument};
  if (!due_.empty() && bucket_number(time) == wheel_start_) {
    const Due due{time, event->order, event};
    due_.insert(std::upper_bound(due_.begin(), due_.end(), due, Later{}), due);
  } else if (bucket_number(time) < wheel_end()) {
    insert_near(event);
  } else {
    far_.push(event);
  }
  if (time < next_time_) next_time_ = time;
}

// Moves the wheel to the current time: events that it now covers leave the heap.
void Engine::turn_wheel() {
  wheel_start_ = bucket_number(now_);
  while (!far_.empty() && bucket_number(far_.top()->time) < wheel_end()) {
    insert_near(far_.top());
    far_.pop();
  }
}

// Sorts the events of the bucket in which the clock is.
void Engine::take_up_bucket() {
  if (bucket_number(now_) != wheel_start_) turn_wheel();
  const std::uint64_t index = static_cast<std::uint64_t>(wheel_start_) % kBuckets;
  Bucket& bucket = wheel_[index];
  for (Event* event = bucket.first; event != nullptr; event = event->next) {
    due_.push_back({event->time, event->order, event});
  }
  std::sort(due_.begin(), due_.end(), Later{});
  near_events_ -= due_.size();
  bucket = Bucket{};
  occupied_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
}

// Of the wheel and the heap. Every event of the wheel is before every event of the heap.
std::int64_t Engine::earliest() const {
  if (near_events_ == 0) return far_.empty() ? kNever : far_.top()->time;
  const std::uint64_t index = static_cast<std::uint64_t>(wheel_start_) % kBuckets;
  std::uint64_t word_index = index / 64;
  std::uint64_t word = occupied_[word_index] & (~std::uint64_t{0} << (index % 64));
  while (word == 0) {
    word_index = (word_index + 1) % kWords;
    word = occupied_[word_index];
  }
  return wheel_[word_index * 64 + static_cast<std::uint64_t>(std::countr_zero(word))].earliest;
}

void Engine::step() {
  assert(next_time_ != kNever);
  now_ = next_time_;
  if (due_.empty()) take_up_bucket();
  Event* event = due_.back().event;
  due_.pop_back();
  const Event done = *event;
  event->next = free_;
  free_ = event;
  ++events_run_;
  next_time_ = due_.empty() ? earliest() : due_.back().time;
  done.action(done.object, done.argument);
}

}  // namespace verbscope::sim
