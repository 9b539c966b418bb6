// `verbscope diff`: whether the points of one results file are slower or faster than those of another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/environment_diff.hpp"
#include "common/record.hpp"

namespace verbscope {

// The order of the words in diff.cpp.
enum class Verdict { inconclusive, equivalent, slower, faster, failed, only_base, only_new };

struct DiffRequest {
  double threshold_percent = 3;  // a smaller change does not count
  double confidence = 0.95;      // of all verdicts together
};

struct RatioInterval {
  double low = 1, high = 1;
};

// A point with all of its repetitions on both sides.
struct DiffRow {
  std::string id, title, fabric;
  Verdict verdict = Verdict::inconclusive;
  std::vector<double> base, other;        // rates, millions of operations a second
  double ratio = 1;                       // of the geometric means; meaningless with one side only
  std::optional<RatioInterval> interval;  // of the ratio, for this point alone; absent with one run on a side
  bool could_decide = false;              // inconclusive: more repetitions would, and so many
  int repetitions = 0;
  std::string reason;  // failed: why it failed on the new side
};

struct Diff {
  DiffRequest request;
  std::vector<EnvironmentDifference> environment;
  std::vector<DiffRow> rows;
};

// Points are matched by benchmark, options and fabric (a profile's file counts as its name); repetitions and seeds of a
// point are its samples, and a run with the same repetition and seed counts once, the last. In the order of `base`.
// Verdicts are those of analysis/change.hpp, corrected for the number of points that have two runs or more on both
// sides.
Diff diff_records(const std::vector<Record>& base, const std::vector<Record>& other, const DiffRequest& request);

// Whether no point is slower or failed; when `strict`, whether every point is equivalent or faster.
bool passes(const Diff& diff, bool strict);

// In `width` columns (TextTable::text).
std::string diff_text(const Diff& diff, std::size_t width = 0);
Json diff_json(const Diff& diff);
// The rows only.
std::string diff_csv(const Diff& diff);

}  // namespace verbscope
