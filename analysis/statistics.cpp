#include "analysis/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>

namespace verbscope {
namespace {

// Probability with which the suggested number of repetitions decides.
constexpr double kPower = 0.9;

struct Moments {
  double mean = 0, variance = 0;  // of single values, not of their mean
};

Moments moments(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  Moments out;
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  for (const double value : values) out.variance += (value - out.mean) * (value - out.mean) / (n - 1);
  return out;
}

std::vector<double> logarithms(const std::vector<double>& values, double unit) {
  std::vector<double> out;
  for (const double value : values) out.push_back(std::log(value / unit));
  return out;
}

// Upper limit of the rounding error in a logarithm of a ratio, and in a mean of n of them.
double rounding(const std::vector<double>& logs) {
  const double largest = std::abs(*std::ranges::max_element(logs, {}, [](double value) { return std::abs(value); }));
  return std::numeric_limits<double>::epsilon() * (1 + largest) * static_cast<double>(logs.size());
}

double square(double x) {
  return x * x;
}

// Welch's degrees of freedom, from the variances of both means.
double welch_freedom(double first, std::size_t first_count, double second, std::size_t second_count) {
  return square(first + second) / (square(first) / static_cast<double>(first_count - 1) +
                                   square(second) / static_cast<double>(second_count - 1));
}

double quantile(double freedom, double probability) {
  return boost::math::quantile(boost::math::students_t(freedom), probability);
}

}  // namespace

std::optional<double> mean_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

MeanInterval mean_interval(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) return {.mean = mean, .low = mean, .high = mean, .count = 1};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half_width = interval_factor(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return {.mean = mean, .low = mean - half_width, .high = mean + half_width, .count = values.size()};
}

double interval_factor(std::size_t freedom) {
  return quantile(static_cast<double>(freedom), (1 + kFigureConfidence) / 2);
}

double LogDifference::p_value_below(double bound) const {
  return boost::math::cdf(boost::math::students_t(freedom), (estimate - bound) / standard_error);
}

double LogDifference::p_value_above(double bound) const {
  return boost::math::cdf(boost::math::students_t(freedom), (bound - estimate) / standard_error);
}

double LogDifference::half_width(double confidence) const {
  return quantile(freedom, (1 + confidence) / 2) * standard_error;
}

std::optional<LogDifference> log_difference(const std::vector<double>& first, const std::vector<double>& second) {
  if (first.size() < 2 || second.size() < 2) return std::nullopt;
  // Logarithms of ratios near 1 lose no digits to rounding, and equal values give exactly no difference.
  const std::vector<double> logs = logarithms(first, first.front()), others = logarithms(second, first.front());
  const Moments a = moments(logs), b = moments(others);
  const double first_mean = std::max(a.variance / static_cast<double>(first.size()), square(rounding(logs)));
  const double second_mean = std::max(b.variance / static_cast<double>(second.size()), square(rounding(others)));
  return LogDifference{.estimate = b.mean - a.mean,
                       .standard_error = std::sqrt(first_mean + second_mean),
                       .freedom = welch_freedom(first_mean, first.size(), second_mean, second.size()),
                       .first_variance = a.variance,
                       .second_variance = b.variance};
}

double log_margin(double percent) {
  return -std::log1p(-percent / 100);
}

Claims claims(const LogDifference& difference, double margin) {
  const double slower = difference.p_value_below(-margin), faster = difference.p_value_above(margin);
  return {.changed = std::min(1.0, 2 * std::min(slower, faster)),
          .equivalent = std::max(difference.p_value_above(-margin), difference.p_value_below(margin))};
}

std::vector<bool> holm_rejections(const std::vector<double>& p_values, double alpha) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&p_values](std::size_t i) { return p_values[i]; });
  std::vector<bool> rejected(p_values.size(), false);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    if (p_values[order[rank]] > alpha / static_cast<double>(order.size() - rank)) break;
    rejected[order[rank]] = true;
  }
  return rejected;
}

std::optional<int> repetitions_to_decide(const LogDifference& difference, double margin, double alpha,
                                         std::size_t comparisons) {
  const double size = std::abs(difference.estimate), each = alpha / static_cast<double>(comparisons);
  const double variance = difference.first_variance + difference.second_variance;
  const bool change = size > margin;
  const double distance = std::abs(size - margin);
  // A change is tested on both sides, so each test gets half of alpha. Equivalence must pass two tests. If the
  // difference is 0, both tests fail equally often.
  const double level = change ? each / 2 : each, power = change ? kPower : (1 + kPower) / 2;
  const auto decides = [&](int n) {
    if (variance == 0) return distance > 0;
    const double freedom = welch_freedom(difference.first_variance, static_cast<std::size_t>(n),
                                         difference.second_variance, static_cast<std::size_t>(n));
    const double error = std::sqrt(variance / n);
    return distance >= (quantile(freedom, 1 - level) + quantile(freedom, power)) * error;
  };
  if (!decides(kMaxRepetitions)) return std::nullopt;
  int low = 1, high = kMaxRepetitions;  // `low` is too few, `high` is enough
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (decides(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace verbscope
