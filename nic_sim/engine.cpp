#include "nic_sim/engine.hpp"

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
  if (bucket.first == nullptr) {
    event->next = nullptr;
    bucket.first = bucket.last = event;
  } else if (!before(event, bucket.last)) {
    event->next = nullptr;
    bucket.last = bucket.last->next = event;
  } else if (before(event, bucket.first)) {
    event->next = bucket.first;
    bucket.first = event;
  } else {
    Event* previous = bucket.first;
    while (!before(event, previous->next)) previous = previous->next;
    event->next = previous->next;
    previous->next = event;
  }
}

void Engine::schedule(Picos when, Action action, void* object, std::uint64_t argument) {
  Event* event = allocate();
  const std::int64_t time = when.count() > now_ ? when.count() : now_;
  *event = Event{time, order_++, nullptr, action, object, argument};
  if (bucket_number(time) < wheel_end()) {
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

// Every event of the wheel is before every event of the heap.
std::int64_t Engine::earliest() const {
  if (near_events_ == 0) return far_.empty() ? kNever : far_.top()->time;
  const std::uint64_t index = static_cast<std::uint64_t>(wheel_start_) % kBuckets;
  std::uint64_t word_index = index / 64;
  std::uint64_t word = occupied_[word_index] & (~std::uint64_t{0} << (index % 64));
  while (word == 0) {
    word_index = (word_index + 1) % kWords;
    word = occupied_[word_index];
  }
  return wheel_[word_index * 64 + static_cast<std::uint64_t>(std::countr_zero(word))].first->time;
}

void Engine::step() {
  assert(next_time_ != kNever);
  now_ = next_time_;
  if (bucket_number(now_) != wheel_start_) turn_wheel();
  const std::uint64_t index = static_cast<std::uint64_t>(wheel_start_) % kBuckets;
  Bucket& bucket = wheel_[index];
  Event* event = bucket.first;
  bucket.first = event->next;
  --near_events_;
  if (bucket.first == nullptr) {
    bucket.last = nullptr;
    occupied_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
  }
  const Event done = *event;
  event->next = free_;
  free_ = event;
  ++events_run_;
  next_time_ = bucket.first != nullptr ? bucket.first->time : earliest();
  done.action(done.object, done.argument);
}

}  // namespace verbscope::sim
