// Intervals of predictions: where a published or measured value is expected, from the errors of other predictions.
#pragma once

#include <string>
#include <vector>

#include "harness/evidence/evidence.hpp"

namespace verbscope {

// Share of the values that should lie inside their intervals, in percent.
inline constexpr int kIntervalPercent = 80;
// Fewest errors with a smallest and a largest one that enclose a further error with this share: 1 - 2 / (9 + 1).
inline constexpr std::size_t kMinErrors = 9;

// What a row is a figure of: "measured rate below 64 KB", "measured latency of 4 KB and more (shape)", "published
// ratio", "published place on a curve".
std::string kind_of(const EvidenceRow& row);

// True for a prediction that counts and has a simulated figure. The others carry no interval: calibrated rows, and rows
// of the closed form.
bool carries_interval(const EvidenceOutcome& outcome);

// Sets the intervals. The errors are the logarithms of simulated over actual value, of the predictions with an exact
// value and another source: those of the same kind and cluster; if fewer than kMinErrors, those of the same kind; if
// still fewer, all. Of n errors, the k-th smallest and the k-th largest bound the interval, k = floor(0.1 (n + 1)): a
// further error of the same distribution lies between them with probability 1 - 2 k / (n + 1) (Wilks, "Determination of
// Sample Sizes for Setting Tolerance Limits", Annals of Mathematical Statistics 12, 1941).
void add_intervals(std::vector<EvidenceOutcome>& outcomes);

// Number of exact values with an interval, and of those inside.
struct Coverage {
  std::size_t rows = 0, inside = 0;
};
Coverage coverage_of(const std::vector<const EvidenceOutcome*>& outcomes);

}  // namespace verbscope
