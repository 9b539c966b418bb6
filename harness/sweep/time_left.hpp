// Estimates the remaining time of a run from its finished points.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace verbscope {

// Fits log(time) as a linear function of the logarithms of numeric options, with an offset for each value of other
// options. Points with 5,000 clients are thus expected to take longer than earlier points with 4.
class TimeLeft {
 public:
  // Without knowledge of the points: each is expected to take the mean time.
  explicit TimeLeft(std::size_t count) : features_(count), took_(count, kNotEnded) {}
  explicit TimeLeft(const std::vector<Point>& points);

  void ended(std::size_t point, std::chrono::duration<double> took) { took_.at(point) = took.count(); }
  std::size_t count() const { return took_.size(); }
  // 0 until the first point has finished.
  std::chrono::duration<double> left() const;

 private:
  static constexpr double kNotEnded = -1;

  std::vector<double> fitted_times() const;

  std::vector<std::vector<double>> features_;  // by point
  std::vector<double> took_;                   // seconds
};

}  // namespace verbscope
