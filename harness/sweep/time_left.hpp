// An estimate of the time that the rest of a run takes, from the points that have ended.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace verbscope {

// Fits log(time) linearly in the logarithms of numeric options and in an offset for each other value: points with 5,000
// clients are expected to take longer than the first ones, with 4.
class TimeLeft {
 public:
  // Points of which nothing is known: each is expected to take the mean.
  explicit TimeLeft(std::size_t count) : features_(count), took_(count, kNotEnded) {}
  explicit TimeLeft(const std::vector<Point>& points);

  void ended(std::size_t point, std::chrono::duration<double> took) { took_.at(point) = took.count(); }
  std::size_t count() const { return took_.size(); }
  // 0 before the first point has ended.
  std::chrono::duration<double> left() const;

 private:
  static constexpr double kNotEnded = -1;

  std::vector<double> fitted_times() const;

  std::vector<std::vector<double>> features_;  // of each point
  std::vector<double> took_;                   // seconds
};

}  // namespace verbscope
