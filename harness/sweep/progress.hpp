// The progress of a sweep on the console: names of its points, and the estimated remaining time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <set>
#include <string>
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

// A name consists of the benchmark, the label, the options that differ between the points, and the repetition:
// "send_rate \"batches\" post_list=16 size=60 #2".
class PointNames {
 public:
  explicit PointNames(const std::vector<Point>& points);
  std::string name(const Point& point) const;

 private:
  std::set<std::string> varying_;
  bool repeated_ = false;
};

class Progress {
 public:
  // `time_left` was made from the points that will run; `terminal` is true if `out` is one.
  Progress(TimeLeft time_left, std::FILE* out, bool terminal);

  void started(const std::string& name);
  // `point`: index of the point; `outcome`: "101.60 Mops"; `took`: wall-clock time.
  void finished(std::size_t point, const std::string& name, const std::string& outcome,
                std::chrono::duration<double> took);

 private:
  std::string left_text() const;
  void print(const std::string& line, bool ended);

  TimeLeft time_left_;
  std::size_t done_ = 0;
  std::FILE* out_;
  bool terminal_;
};

// "0.4 s", "12 s", "3 min 20 s", "2 h 05 min".
std::string duration_text(std::chrono::duration<double> duration);

}  // namespace verbscope
