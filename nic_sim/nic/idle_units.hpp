// The units of a pool that have nothing to do.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace verbscope::sim {

class IdleUnits {
 public:
  // All of `units` are idle.
  explicit IdleUnits(int units) {
    for (std::uint32_t unit = 0; unit < static_cast<std::uint32_t>(units); ++unit) units_.push_back(unit);
  }

  bool empty() const { return units_.empty(); }

  // Takes `wanted` if it is idle, else the one that has been idle longest: a QP that goes back to the unit that it had
  // last keeps one unit, and many QPs share the work evenly. There is one.
  std::uint32_t take(std::uint32_t wanted) {
    auto found = std::ranges::find(units_, wanted);
    if (found == units_.end()) found = units_.begin();
    const std::uint32_t unit = *found;
    units_.erase(found);
    return unit;
  }

  void give_back(std::uint32_t unit) { units_.push_back(unit); }

 private:
  std::vector<std::uint32_t> units_;  // the one that has been idle longest in front
};

}  // namespace verbscope::sim
