// What a fit has learned: parameters with intervals, errors on the points that judge it, points that it does not
// explain; and the profile of all this.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"
#include "harness/learn/learner.hpp"

namespace verbscope {

struct LearnedValue {
  FitParameter parameter;
  double value = 0;
  LearnedInterval interval;
};

// Absolute errors of the points that judge the fit, in percent.
struct KindError {
  std::string kind;
  std::size_t points = 0;
  double median = 0, percentile_90 = 0;
};

// A fitted point whose simulated figure is off by more than the others, or any point whose simulation failed.
struct Unexplained {
  const LearnedPoint* point = nullptr;
  double error_percent = 0;  // simulated / measured; NaN if the simulation failed
};

struct Learned {
  std::vector<LearnedValue> values;
  std::vector<KindError> errors;  // by kind, then of all
  std::vector<Unexplained> unexplained;
  std::size_t fitted = 0, held_out = 0;
  double scale_percent = 0;  // robust standard deviation of a fitted point
};

// Precondition: learner.finish().
Learned learned_by(const Learner& learner);

// Where the records are, and which host was left out.
struct LearnedProvenance {
  std::string name;     // of the new profile
  std::string records;  // results file
  std::vector<std::string> slow_hosts;
};

// The new profile: each learned parameter with its interval and the records, and `learned`, the errors of the points
// that judge it.
Json learned_profile(const Learner& learner, const Learned& learned, const LearnedProvenance& provenance);

// Tables of all this for the console. Ends with a newline.
std::string learned_text(const Learner& learner, const Learned& learned, std::size_t width);

}  // namespace verbscope
