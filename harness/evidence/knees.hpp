// Where curves bend: the knee at which a rate stops rising, and the cliff at which it falls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/evidence/measured_curves.hpp"

namespace verbscope {

// The place where a curve has stopped to rise: the first with 90 % of the largest value.
std::size_t knee(const std::vector<double>& values);
// The place of a curve's cliff: where half of the fall from the largest value to the least behind it is done. Absent
// when it falls by less than 15 % of the largest value.
std::optional<std::size_t> cliff(const std::vector<double>& values);

// A knee or a cliff of a measured curve, of ours, or of both. A knee at the first point of both is none.
struct Bend {
  std::string kind;                      // "knee" or "cliff"
  const MeasuredCurve* curve = nullptr;  // outlives the bend
  std::optional<double> theirs, ours;    // the value of the column
  bool near = false;                     // both are there, and no more than one step of the sweep apart

  // "within a step", "elsewhere", "missing", "ours only".
  const char* verdict() const;
};

// The bends of the curves, in their order.
std::vector<Bend> bends(const std::vector<MeasuredCurve>& curves);

}  // namespace verbscope
