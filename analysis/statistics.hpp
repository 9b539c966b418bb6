// Statistics of repeated runs: the mean with its confidence interval, and tests whether two samples of rates differ.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace verbscope {

// Confidence of all intervals in figures.
inline constexpr double kFigureConfidence = 0.95;

// Nothing if there are no values.
std::optional<double> mean_of(const std::vector<double>& values);

struct MeanInterval {
  double mean = 0;
  double low = 0, high = 0;  // at kFigureConfidence, by Student's t; for a single value both equal it
  std::size_t count = 0;
};

// Precondition: `values` is not empty.
MeanInterval mean_interval(const std::vector<double>& values);

// Half the width of the confidence interval of a mean, in standard errors. `freedom`: degrees of freedom of the sample.
double interval_factor(std::size_t freedom);

// Difference of the logarithms of two samples' geometric means, with the quantities for Welch's t-test ("The
// generalization of 'Student's' problem when several different population variances are involved", Biometrika 34,
// 1947).
struct LogDifference {
  double estimate = 0;                             // log(second / first)
  double standard_error = 0;                       // at least the rounding error
  double freedom = 1;                              // degrees of freedom
  double first_variance = 0, second_variance = 0;  // variance of single values, not of the mean

  // Probability of an estimate this low or lower (this high or higher) if the true difference is `bound`.
  double p_value_below(double bound) const;
  double p_value_above(double bound) const;
  // Half the width of the confidence interval.
  double half_width(double confidence) const;
};

// Returns nothing if a side has fewer than two values, which show no spread. Precondition: all values are above 0.
std::optional<LogDifference> log_difference(const std::vector<double>& first, const std::vector<double>& second);

// The logarithm of a change by `percent`. `second` counts as slower below (1 - percent / 100) times `first`, and as
// faster above the inverse of that. So swapping the samples swaps the verdicts.
double log_margin(double percent);

// The p-values of two claims about a difference.
//
// changed: the difference exceeds the margin, on the side of the estimate. Twice the smaller p-value of two one-sided
// tests against -margin and margin.
//
// equivalent: the difference is within the margin. The larger p-value of two one-sided tests (TOST: Schuirmann, "A
// comparison of the two one-sided tests procedure and the power approach", J. Pharmacokinetics and Biopharmaceutics 15,
// 1987).
struct Claims {
  double changed = 1, equivalent = 1;
};
Claims claims(const LogDifference& difference, double margin);

// Returns for each hypothesis whether it is rejected. The probability of one or more false rejections is at most
// `alpha`, even if the hypotheses depend on each other: Holm, "A simple sequentially rejective multiple test
// procedure", Scandinavian J. of Statistics 6, 1979.
std::vector<bool> holm_rejections(const std::vector<double>& p_values, double alpha);

// Upper limit of repetitions_to_decide.
inline constexpr int kMaxRepetitions = 10'000;

// Number of values per sample that lead to a verdict (changed or equivalent) in nine of ten cases. Assumes the present
// difference and spread, and `comparisons` simultaneous claims at level `alpha`. Returns nothing if kMaxRepetitions
// are not enough, because the difference is too close to the margin.
std::optional<int> repetitions_to_decide(const LogDifference& difference, double margin, double alpha,
                                         std::size_t comparisons);

}  // namespace verbscope
