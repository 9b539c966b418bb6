#include "nic_sim/engine.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>

namespace verbscope::sim {

namespace {

constexpr int kLineBytes = 64;
constexpr std::size_t kAhead = 3;  // events
constexpr int kObjectLines = 16;   // what an event looks at in a QP, the largest object
constexpr int kArgumentLines = 3;  // in front of a packet's data

void fetch(const void* from, int lines) {
  for (int i = 0; i < lines; ++i) __builtin_prefetch(static_cast<const std::byte*>(from) + i * kLineBytes);
}

}  // namespace

void Engine::schedule(Picos when, Action action, void* object, std::uint64_t argument) {
  const Event event{std::max(when.count(), now_), order_++, action, object, argument};
  const std::int64_t bucket = bucket_number(event.time);
  if (bucket > due_bucket_) {
    put_away(event);
    return;
  }
  if (bucket < due_bucket_) {
    put_back_due();
    due_bucket_ = bucket;
  }
  due_.insert(std::upper_bound(due_.begin(), due_.end(), event, Later{}), event);
  next_time_ = due_.back().time;
}

void Engine::put_away(const Event& event) {
  const std::int64_t bucket = bucket_number(event.time);
  if (bucket >= bucket_number(now_) + static_cast<std::int64_t>(kBuckets)) {
    far_.push(event);
    return;
  }
  const std::uint64_t index = place_of(bucket);
  occupied_[index / 64] |= std::uint64_t{1} << (index % 64);
  ++near_events_;
  wheel_[index].push_back(event);
}

// Something is due earlier than what was taken up.
void Engine::put_back_due() {
  for (const Event& event : due_) put_away(event);
  due_.clear();
}

// The first bucket of the wheel that has events; there is one.
std::int64_t Engine::first_of_wheel() const {
  const std::int64_t begin = bucket_number(now_);
  const std::uint64_t index = place_of(begin);
  std::uint64_t word_index = index / 64;
  std::uint64_t word = occupied_[word_index] & (~std::uint64_t{0} << (index % 64));
  while (word == 0) {
    word_index = (word_index + 1) % kWords;
    word = occupied_[word_index];
  }
  const std::uint64_t found = word_index * 64 + static_cast<std::uint64_t>(std::countr_zero(word));
  return begin + static_cast<std::int64_t>(place_of(static_cast<std::int64_t>(found - index)));
}

// Takes up and sorts the events of the next bucket that has any, from the wheel and from the heap.
void Engine::take_up() {
  due_bucket_ = near_events_ == 0 ? kNever : first_of_wheel();
  if (!far_.empty()) due_bucket_ = std::min(due_bucket_, bucket_number(far_.top().time));
  next_time_ = kNever;
  if (due_bucket_ == kNever) return;
  const std::uint64_t index = place_of(due_bucket_);
  std::vector<Event>& bucket = wheel_[index];
  if (!bucket.empty() && bucket_number(bucket.front().time) == due_bucket_) {
    due_.swap(bucket);
    near_events_ -= due_.size();
    occupied_[index / 64] &= ~(std::uint64_t{1} << (index % 64));
  }
  while (!far_.empty() && bucket_number(far_.top().time) == due_bucket_) {
    due_.push_back(far_.top());
    far_.pop();
  }
  if (due_.size() > 1) std::sort(due_.begin(), due_.end(), Later{});
  next_time_ = due_.back().time;
}

// With many nodes the objects of an event have left the processor's caches since they were looked at last: asked for a
// few events ahead, they come while those run. What is in the caches costs a few instructions.
void Engine::fetch_ahead() const {
  if (due_.size() <= kAhead) return;
  const Event& event = due_[due_.size() - 1 - kAhead];
  fetch(event.object, kObjectLines);
  fetch(reinterpret_cast<const void*>(event.argument), kArgumentLines);  // often a packet; any address may be asked for
}

std::size_t Engine::places() const {
  std::size_t sum = due_.capacity() + far_.size();
  for (const std::vector<Event>& bucket : wheel_) sum += bucket.capacity();
  return sum;
}

void Engine::step() {
  assert(!due_.empty());
  const Event event = due_.back();
  due_.pop_back();
  now_ = event.time;
  ++events_run_;
  if (due_.empty()) {
    take_up();
  } else {
    next_time_ = due_.back().time;
  }
  fetch_ahead();
  event.action(event.object, event.argument);
}

}  // namespace verbscope::sim
