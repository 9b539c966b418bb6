// A machine whose figures are formulas, so that the right parameters of a fit are known.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "harness/learn/robust_fit.hpp"

namespace verbscope {

inline FitParameter parameter(const std::string& name, double start) {
  return {.name = name, .start = start, .low = 1, .high = 1000};
}

// A machine that works in two ways: a row takes the longer of `first` and `second`, or their sum.
class Machine {
 public:
  std::size_t longer(double first, double second) { return add(first, second, false); }
  std::size_t sum(double first, double second) { return add(first, second, true); }

  std::vector<double> figures(const std::vector<FitTrial>& trials) {
    simulations_ += trials.size();
    std::vector<double> out;
    for (const FitTrial& trial : trials) out.push_back(figure(trial.row, trial.values));
    return out;
  }
  LogFigures simulate() {
    return [this](const std::vector<FitTrial>& trials) { return figures(trials); };
  }

  double figure(std::size_t row, const std::vector<double>& values) const {
    const Row& of = rows_[row];
    const double first = of.first * values[0], second = of.second * values[1];
    return -std::log(of.sum ? first + second : std::max(first, second));
  }
  std::size_t rows() const { return rows_.size(); }
  std::size_t simulations() const { return simulations_; }

 private:
  struct Row {
    double first, second;
    bool sum;
  };
  std::size_t add(double first, double second, bool sum) {
    rows_.push_back({first, second, sum});
    return rows_.size() - 1;
  }
  std::vector<Row> rows_;
  std::size_t simulations_ = 0;
};

}  // namespace verbscope
