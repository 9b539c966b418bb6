// Whether one sample of rates is slower or faster than another, or equivalent to it: statistics only.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace verbscope {

// The difference of the logarithms of two samples' geometric means, with what Welch's t needs ("The generalization of
// 'Student's' problem when several different population variances are involved", Biometrika 34, 1947).
struct LogDifference {
  double estimate = 0;                             // log(second / first)
  double standard_error = 0;                       // never less than rounding
  double freedom = 1;                              // degrees of freedom
  double first_variance = 0, second_variance = 0;  // of one value of each

  // The chance to see a difference so low, or lower, when the true one is `bound`; so high, or higher.
  double chance_so_low(double bound) const;
  double chance_so_high(double bound) const;
  // Half the width of the interval of this confidence.
  double reach(double confidence) const;
};

// None with fewer than two values on a side: one value says nothing of its spread. Values are above 0.
std::optional<LogDifference> log_difference(const std::vector<double>& first, const std::vector<double>& second);

// The logarithm of a change of so many percent: `second` counts as slower from (1 - percent / 100) on, as faster from
// the inverse of that on, so that swapping the samples swaps the verdicts.
double log_margin(double percent);

// The p-values of the two claims that can be made of a difference.
//
// changed: it is beyond the margin, to the side that the estimate is on. Twice the smaller of two one-sided tests
// against -margin and margin.
//
// equivalent: it is within the margin. The larger of two one-sided tests (TOST: Schuirmann, "A comparison of the two
// one-sided tests procedure and the power approach", J. Pharmacokinetics and Biopharmaceutics 15, 1987).
struct Claims {
  double changed = 1, equivalent = 1;
};
Claims claims(const LogDifference& difference, double margin);

// Which of the hypotheses are rejected so that the chance of even one wrong rejection among them is at most `alpha`,
// whatever their dependence: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian J. of
// Statistics 6, 1979.
std::vector<bool> holm_rejections(const std::vector<double>& p_values, double alpha);

// The most repetitions that repetitions_to_decide says.
inline constexpr int kMostRepetitions = 10'000;

// How many values each sample would need to be called changed or equivalent nine times in ten, were the difference and
// the spread just what was seen, and one of `comparisons` claims made at once at `alpha`. None when kMostRepetitions
// would not do: the difference is as large as the margin, or nearly.
std::optional<int> repetitions_to_decide(const LogDifference& difference, double margin, double alpha,
                                         std::size_t comparisons);

}  // namespace verbscope
