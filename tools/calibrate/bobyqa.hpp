// NLopt's BOBYQA (Powell, DAMTP 2009/NA06): the minimum of a function of some numbers within a box, without
// derivatives.
#pragma once

#include <functional>
#include <vector>

namespace verbscope {

struct Box {
  std::vector<double> lower, upper;
};

struct Minimum {
  std::vector<double> at;
  double value = 0;
  int evaluations = 0;
};

// The evaluation during which the time passes is the last.
struct SearchLimit {
  int evaluations = 0;
  double seconds = 0;  // of this machine, above 0
};

using Objective = std::function<double(const std::vector<double>&)>;

// The evaluations that BOBYQA makes of a function of so many numbers before it takes its first step. They depend on the
// start, the box and the step alone.
int first_evaluations(std::size_t numbers);

// Looks for the minimum from `start` on, which lies in the box, with steps of `step` at first (less towards a bound
// that is nearer), until they are below a hundredth of that, or after the limit. What was found is never
// worse than the start. An exception of the objective ends it and is thrown again.
Minimum minimise(const Objective& objective, const std::vector<double>& start, const Box& box, double step,
                 const SearchLimit& limit);

}  // namespace verbscope
