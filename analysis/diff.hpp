// `verbscope diff`: whether the points of one results file are slower or faster than those of another.
#pragma once

#include <string>
#include <vector>

#include "analysis/ratio_interval.hpp"
#include "common/record.hpp"

namespace verbscope {

enum class Verdict { no_evidence, slower, faster, failed, only_base, only_new };

// A point with all of its repetitions on both sides.
struct DiffRow {
  std::string id, title, fabric;
  Verdict verdict = Verdict::no_evidence;
  std::vector<double> base, other;        // rates, millions of operations a second
  double ratio = 1;                       // ratio of the means; meaningless with one side only
  std::optional<RatioInterval> interval;  // absent with one run on a side, which is never evidence
  std::string reason;                     // failed: why it failed on the new side
};

// Points are matched by benchmark, options and fabric (a profile's file counts as its name); repetitions and seeds of a
// point are its samples, and a run with the same repetition and seed counts once, the last. In the order of `base`.
std::vector<DiffRow> diff_records(const std::vector<Record>& base, const std::vector<Record>& other, double level);

// Whether the gate lets these pass: no point failed, and none that is slower is slower by more than `percent`.
bool within_threshold(const std::vector<DiffRow>& rows, double percent);

std::string diff_text(const std::vector<DiffRow>& rows, double level);
Json diff_json(const std::vector<DiffRow>& rows);
std::string diff_csv(const std::vector<DiffRow>& rows);

}  // namespace verbscope
