// `verbscope diff`: whether the points of one results file are slower or faster than those of another, or those with
// one value of an option than those with another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/environment_diff.hpp"
#include "common/record.hpp"

namespace verbscope {

// The order of the words in diff.cpp. `more` and `fewer` are those of counts, of which neither is better.
enum class Verdict { inconclusive, equivalent, slower, faster, more, fewer, failed, only_base, only_new };

struct DiffRequest {
  double threshold_percent = 3;        // a smaller change does not count
  double confidence = 0.95;            // of all verdicts together
  std::string metric = "rate_mops";    // a key of result_number
  std::vector<std::string> ignored{};  // options by which points are not matched
};

struct RatioInterval {
  double low = 1, high = 1;
};

// A point with all of its repetitions on both sides.
struct DiffRow {
  std::string id, title, fabric;
  Verdict verdict = Verdict::inconclusive;
  std::vector<double> base, other;        // of the metric
  double ratio = 1;                       // of the geometric means; meaningless with one side only
  std::optional<RatioInterval> interval;  // of the ratio, for this point alone; absent with one run on a side
  bool could_decide = false;              // inconclusive: more repetitions would, and so many
  int repetitions = 0;
  std::string reason;  // failed: why it failed on the new side
  std::string cause;   // of a change beyond the threshold, where counters say so
};

struct Diff {
  DiffRequest request;
  std::vector<EnvironmentDifference> environment{};
  std::vector<DiffRow> rows{};
  bool identical = false;  // both sides have the same records
  std::string across{};    // of diff_across: what the base has, "connection=RC"
  // Options that nobody set and that differ between matched points all the same: "clients 4 -> 8".
  std::vector<std::string> not_set{};
  // Where no point has a partner: the options in which the nearest ones differ, "size (base 64, new 128)".
  std::vector<std::string> apart{};
};

// Points are matched by benchmark, options and fabric (a profile's file counts as its name), but for the options of
// `request.ignored`, "fabric" among them; repetitions and seeds of a point are its samples, and a run with the same
// repetition and seed counts once, the last. In the order of `base`. Verdicts are those of analysis/change.hpp,
// corrected for the number of points that have two runs or more on both sides. Throws UsageError where points of one
// side differ in nothing but an ignored option.
Diff diff_records(const std::vector<Record>& base, const std::vector<Record>& other, const DiffRequest& request);

// The records with the first value of the option `across` (of "KEY=A,B": with A) against those with each other one
// (with B), matched without it. Throws UsageError where the option has one value only.
Diff diff_across(const std::vector<Record>& records, const std::string& across, DiffRequest request);

// Why the gate closes, a line: a point is slower or failed or, when `strict`, not equivalent or faster. Empty where it
// does not.
std::string gate_failure(const Diff& diff, bool strict);

// In `width` columns (TextTable::text).
std::string diff_text(const Diff& diff, std::size_t width = 0);
Json diff_json(const Diff& diff);
// The rows only.
std::string diff_csv(const Diff& diff);

}  // namespace verbscope
