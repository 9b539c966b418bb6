// The comparison of two samples of rates: the ratio of their means with a confidence interval.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace verbscope {

struct RatioInterval {
  double ratio = 1;  // mean of the second over mean of the first
  double low = 1, high = 1;
};

// The interval of confidence `level` (0 to 1, exclusive). The standard error of the logarithm of the ratio is that of
// `resamples` bootstrap resamples of both samples (a fixed generator: the same samples give the same interval); times
// sqrt(n / (n - 1)) for each side, because a bootstrap of n values is narrow by that (Hesterberg, "What Teachers Should
// Know About the Bootstrap", The American Statistician 69(4), 2015), and times Student's t with Welch's degrees of
// freedom. It is never narrower than rounding: equal values have a ratio of 1, however many there are. None with fewer
// than two values on a side: one value says nothing of its spread. Rates are above 0.
std::optional<RatioInterval> ratio_interval(const std::vector<double>& base, const std::vector<double>& other,
                                            double level, int resamples = 1000);

}  // namespace verbscope
