// `verbscope diff`: compares the points of two results files, or the points with two values of an option.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"

namespace verbscope {

// A fact with the distinct values of each side, in order of appearance. A side without the fact has no values.
struct EnvironmentDifference {
  std::string fact;  // "kernel", "hosts.n1.devices.mlx5_0.firmware"
  std::vector<std::string> base, other;
};

// The facts whose values differ. Those that most often explain a change are first: firmware, driver, kernel, commit,
// cluster profile. Times, command lines and leftovers of a point are not facts.
std::vector<EnvironmentDifference> environment_differences(const std::vector<Record>& base,
                                                           const std::vector<Record>& other);

// One line per difference, or a line that reports none. Ends with a newline. Control characters are escaped as in JSON.
std::string environment_text(const std::vector<EnvironmentDifference>& differences);
Json environment_json(const std::vector<EnvironmentDifference>& differences);

// In the order of the words in diff_text.cpp. `more` and `fewer` are for counts, where neither is better.
enum class ChangeVerdict { inconclusive, equivalent, slower, faster, more, fewer, failed, only_base, only_new };

// Meaning of a larger value of the metric.
enum class LargerValue { faster, slower, neither };
LargerValue larger_value(const std::string& metric);

struct DiffRequest {
  double threshold_percent = 3;        // smaller changes do not count
  double confidence = 0.95;            // of all verdicts together
  std::string metric = "rate_mops";    // a key of result_number
  std::vector<std::string> ignored{};  // options that need not match
};

struct RatioInterval {
  double low = 1, high = 1;
};

// One point with all repetitions of both sides.
struct DiffRow {
  std::string id, title, fabric;
  ChangeVerdict verdict = ChangeVerdict::inconclusive;
  std::vector<double> base, other;        // values of the metric
  double ratio = 1;                       // of the geometric means; meaningless if one side is missing
  std::optional<RatioInterval> interval;  // of the ratio, for this point alone; absent if a side has only one run
  bool could_decide = false;              // inconclusive, but `repetitions` runs per side would decide
  int repetitions = 0;
  std::string reason;  // failed: the error on the new side
  std::string cause;   // of a change beyond the threshold, if counters show one

  // True if both sides have values.
  bool has_ratio() const { return !base.empty() && !other.empty(); }
};

struct Diff {
  DiffRequest request;
  std::vector<EnvironmentDifference> environment{};
  std::vector<DiffRow> rows{};
  bool identical = false;  // both sides have the same records
  std::string across{};    // diff_across: the option's value in the base, "connection=RC"
  // Options that the user did not set but that differ between matched points: "clients 4 -> 8".
  std::vector<std::string> unset{};
  // If no points match: the options in which the most similar ones differ, "size (base 64, new 128)".
  std::vector<std::string> mismatched{};
};

// Matches points by benchmark, options and fabric (the file name of a profile counts as its name), except for
// `request.ignored`, which may contain "fabric". The samples of a point are its repetitions and seeds; of several runs
// with the same repetition and seed only the last one counts. Rows are in the order of `base`. Verdicts follow
// analysis/statistics.hpp, corrected for the number of points with at least two runs on both sides. Throws UsageError
// if points of one side differ only in an ignored option.
Diff diff_records(const std::vector<Record>& base, const std::vector<Record>& other, const DiffRequest& request);

// Compares records with the first value of option `across` to those with each other value; points are matched without
// that option. For "KEY=A,B" it compares A to B. Throws UsageError if the option has only one value.
Diff diff_across(const std::vector<Record>& records, const std::string& across, DiffRequest request);

// The reason to fail the gate, as one line: a point is slower or failed or, if `strict`, is neither equivalent nor
// faster. Empty if the gate passes.
std::string gate_failure(const Diff& diff, bool strict);

// `width`: see TextTable::text.
std::string diff_text(const Diff& diff, std::size_t width = 0);
Json diff_json(const Diff& diff);
// Only the rows.
std::string diff_csv(const Diff& diff);

}  // namespace verbscope
