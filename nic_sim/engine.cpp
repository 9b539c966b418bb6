#include "nic_sim/engine.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace verbscope::sim {

namespace {

constexpr int kLineBytes = 64;
constexpr std::size_t kAhead = 3;  // events
constexpr int kObjectLines = 16;   // what an event looks at in a QP, the largest object
constexpr int kArgumentLines = 3;  // in front of a packet's data

}  // namespace

void Engine::insert_near(const Event& event) {
  const std::uint64_t index = static_cast<std::uint64_t>(bucket_number(event.time)) % kBuckets;
  Bucket& bucket = wheel_[index];
  occupied_[index / 64] |= std::uint64_t{1} << (index % 64);
  ++near_events_;
  bucket.events.push_back(event);
  bucket.earliest = std::min(bucket.earliest, event.time);
}

void Engine::schedule(Picos when, Action action, void* object, std::uint64_t argument) {
  const std::int64_t time = when.count() > now_ ? when.count() : now_;
  const Event event{time, order_++, action, object, argument};
  if (!due_.empty() && bucket_number(time) == wheel_start_) {
    due_.insert(std::upper_bound(due_.begin(), due_.end(), event, Later{}), event);
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
  while (!far_.empty() && bucket_number(far_.top().time) < wheel_end()) {
    insert_near(far_.top());
    far_.pop();
  }
}

// Sorts the events of the bucket in which the clock is.
void Engine::take_up_bucket() {
  if (bucket_number(now_) != wheel_start_) turn_wheel();
  const std::uint64_t index = static_cast<std::uint64_t>(wheel_start_) % kBuckets;
  Bucket& bucket = wheel_[index];
  due_.swap(bucket.events);
  bucket.earliest = kNever;
  std::sort(due_.begin(), due_.end(), Later{});
  near_events_ -= due_.size();
  occupied_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
}

// Of the wheel and the heap. Every event of the wheel is before every event of the heap.
std::int64_t Engine::earliest() const {
  if (near_events_ == 0) return far_.empty() ? kNever : far_.top().time;
  const std::uint64_t index = static_cast<std::uint64_t>(wheel_start_) % kBuckets;
  std::uint64_t word_index = index / 64;
  std::uint64_t word = occupied_[word_index] & (~std::uint64_t{0} << (index % 64));
  while (word == 0) {
    word_index = (word_index + 1) % kWords;
    word = occupied_[word_index];
  }
  return wheel_[word_index * 64 + static_cast<std::uint64_t>(std::countr_zero(word))].earliest;
}

// With many nodes the objects of an event have left the processor's caches since they were looked at last: asked for a
// few events ahead, they come while those run. What is in the caches costs a few instructions.
void Engine::fetch_ahead() const {
  if (due_.size() <= kAhead) return;
  const auto fetch = [](const void* from, int lines) {
    for (int i = 0; i < lines; ++i) __builtin_prefetch(static_cast<const std::byte*>(from) + i * kLineBytes);
  };
  const Event& event = due_[due_.size() - 1 - kAhead];
  fetch(event.object, kObjectLines);
  fetch(reinterpret_cast<const void*>(event.argument), kArgumentLines);  // often a packet; any address may be asked for
}

std::size_t Engine::places() const {
  std::size_t sum = due_.capacity() + far_.size();
  for (const Bucket& bucket : wheel_) sum += bucket.events.capacity();
  return sum;
}

void Engine::step() {
  assert(next_time_ != kNever);
  now_ = next_time_;
  if (due_.empty()) take_up_bucket();
  const Event done = due_.back();
  due_.pop_back();
  fetch_ahead();
  ++events_run_;
  next_time_ = due_.empty() ? earliest() : due_.back().time;
  done.action(done.object, done.argument);
}

}  // namespace verbscope::sim
