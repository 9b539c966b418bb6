#include "analysis/ratio_interval.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace verbscope {
namespace {

constexpr std::uint64_t kSeed = 0x5eed;

// Rounding takes a mean of n values no further than this: half a unit in the last place each addition and the division.
double mean_rounding(std::size_t n) {
  return static_cast<double>(n) * std::numeric_limits<double>::epsilon() / 2;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The variance of the logarithm of the mean of a sample.
double log_mean_variance(const std::vector<double>& values, int resamples, std::mt19937_64& random) {
  const double n = static_cast<double>(values.size());
  const double whole = n * mean(values);  // logarithms of what is near 1 have no large digits to lose
  double sum = 0, squares = 0;
  for (int i = 0; i < resamples; ++i) {
    double total = 0;
    for (std::size_t k = 0; k < values.size(); ++k) total += values[random() % values.size()];
    const double logarithm = std::log(total / whole);
    sum += logarithm;
    squares += logarithm * logarithm;
  }
  const double center = sum / resamples;
  return std::max(0.0, squares / resamples - center * center) * n / (n - 1);
}

}  // namespace

std::optional<RatioInterval> ratio_interval(const std::vector<double>& base, const std::vector<double>& other,
                                            double level, int resamples) {
  if (base.size() < 2 || other.size() < 2) return std::nullopt;
  std::mt19937_64 random(kSeed);
  const double var_base = log_mean_variance(base, resamples, random);
  const double var_other = log_mean_variance(other, resamples, random);
  RatioInterval out;
  out.ratio = mean(other) / mean(base);
  // Values without a spread still have rounding: of both means, and of what is done with them here.
  double reach = 1 + 2 * (mean_rounding(base.size()) + mean_rounding(other.size()));
  const double variance = var_base + var_other;
  if (variance > 0) {
    const double freedom = variance * variance /
                           (var_base * var_base / static_cast<double>(base.size() - 1) +
                            var_other * var_other / static_cast<double>(other.size() - 1));
    const double t = boost::math::quantile(boost::math::students_t(freedom), (1 + level) / 2);
    reach = std::max(reach, std::exp(t * std::sqrt(variance)));
  }
  out.low = out.ratio / reach;
  out.high = out.ratio * reach;
  return out;
}

}  // namespace verbscope
