#include "nic_sim/host/memory_misses.hpp"

#include <algorithm>

namespace verbscope::sim {

MemoryMisses::Miss* MemoryMisses::find(std::uintptr_t line) {
  const auto found = std::ranges::find(asked_, line, &Miss::line);
  return found == asked_.end() ? nullptr : &*found;
}

// Adds a miss requested at `now`. Returns the time at which it begins.
Picos MemoryMisses::begin(Picos now) {
  const auto ended = std::ranges::find_if(under_way_, [now](Picos end) { return end > now; });
  under_way_.erase(under_way_.begin(), ended);
  const Picos start = under_way_.size() < at_once_ ? now : under_way_[under_way_.size() - at_once_];
  under_way_.push_back(start + latency_);
  return start;
}

Picos MemoryMisses::prefetch(const void* place, Picos now) {
  const std::uintptr_t line = line_of(place);
  if (find(line) != nullptr) return now;
  const Picos start = begin(now);
  if (asked_.size() == kRemembered) asked_.erase(asked_.begin());
  asked_.push_back({line, start + latency_});
  return start;
}

Picos MemoryMisses::load(const void* place, Picos now) {
  Miss* const asked = find(line_of(place));
  if (asked == nullptr) return begin(now) + latency_;
  const Picos there = asked->there;
  asked_.erase(asked_.begin() + (asked - asked_.data()));
  return there;
}

}  // namespace verbscope::sim
