// QPs that stand in line for a unit, and units that wait for a QP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nic_sim/nic/objects.hpp"

namespace verbscope::sim {

// QPs that stand in line for a unit. `side`: the member of a QP that has `queued` and `next_in_line` for it.
template <auto side>
class QpLine {
 public:
  bool empty() const { return first_ == nullptr; }

  // `qp` is not in line.
  void push(SimQp& qp) {
    (qp.*side).queued = true;
    (qp.*side).next_in_line = nullptr;
    (first_ == nullptr ? first_ : (last_->*side).next_in_line) = &qp;
    last_ = &qp;
  }

  // There is one.
  SimQp& pop() {
    SimQp& qp = *first_;
    first_ = (qp.*side).next_in_line;
    (qp.*side).queued = false;
    return qp;
  }

 private:
  SimQp* first_ = nullptr;
  SimQp* last_ = nullptr;
};

// The units of a pool that have nothing to do.

// A list through the units' numbers, and one more place that is both its ends.
class IdleUnits {
 public:
  // All of `units` are idle.
  explicit IdleUnits(int units)
      : end_(static_cast<std::uint32_t>(units)), next_(end_ + std::size_t{1}, end_), before_(next_) {
    for (std::uint32_t unit = 0; unit < end_; ++unit) give_back(unit);
  }

  bool empty() const { return next_[end_] == end_; }

  // Takes `wanted` if it is idle, else the one that has been idle longest: a QP that goes back to the unit that it had
  // last keeps one unit, and many QPs share the work evenly. There is one.
  std::uint32_t take(std::uint32_t wanted) {
    const std::uint32_t unit = next_[wanted] != kBusy ? wanted : next_[end_];
    next_[before_[unit]] = next_[unit];
    before_[next_[unit]] = before_[unit];
    next_[unit] = kBusy;
    return unit;
  }

  void give_back(std::uint32_t unit) {
    next_[unit] = end_;
    before_[unit] = before_[end_];
    next_[before_[end_]] = unit;
    before_[end_] = unit;
  }

 private:
  static constexpr std::uint32_t kBusy = ~0u;

  std::uint32_t end_;
  std::vector<std::uint32_t> next_;  // the one that has been idle longest in front
  std::vector<std::uint32_t> before_;
};

}  // namespace verbscope::sim
