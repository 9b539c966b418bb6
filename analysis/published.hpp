// The table of published figures (configs/published.json), and which record or prediction reproduces which row.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"

namespace verbscope {

inline constexpr const char* kPublishedSchema = "verbscope.published/1";

// The deviation that is allowed, in percent, of a figure that a parameter was fitted to, and of one that is predicted.
// A row may have a limit of its own.
inline constexpr double kCalibratedPercent = 3;
inline constexpr double kPredictedPercent = 10;

// One option of a row's `match`: "threads": 8, or "threads": {"min": 8, "max": 14, "run": 14}.
struct MatchKey {
  std::string key;
  Json run;  // the value to run it with, and the one to match when there is no range
  bool range = false;
  double min = 0, max = 0;

  bool accepts(const Json& value) const;
};

// A run that yields a figure: a benchmark on the row's cluster, or `verbscope predict` (benchmark empty). `result_key`
// is the key of record.result, or of the prediction.
struct PublishedRun {
  std::string benchmark, result_key;
  std::vector<MatchKey> keys;

  // The options to run it with.
  Json params() const;
  bool accepts(const Json& values) const;
};

// The relation of a figure to the published value.
enum class Comparison { equals, at_least, at_most };
const char* to_string(Comparison comparison);

// A figure that is a place on a curve: the row's run, or its ratio to a second one, with each value of an option.
struct CurvePlace {
  enum class Kind {
    reaches,    // the first value at which the curve has kPeakShare of its largest
    holds,      // the last value up to which it has that everywhere
    overtakes,  // the first value from which on it is at least 1
  };
  static constexpr double kPeakShare = 0.9;

  std::string option;
  std::vector<double> values;  // rising
  Kind kind = Kind::reaches;

  // The value at the place, of the curve that has these figures at the values; nothing: it has no such place.
  std::optional<double> place(const std::vector<double>& figures) const;
};

struct PublishedPoint {
  std::string id, paper, where, cluster, what, metric, bottleneck;
  double value = 0;  // 0: not known (a row that nothing reproduces)
  Comparison comparison = Comparison::equals;
  std::optional<double> tolerance_percent;  // the row's own limit
  bool calibration = false;                 // a simulator parameter may be fitted to it; else it only checks
  std::string needs;                        // the thing that is missing to reproduce it; empty: nothing is
  PublishedRun run;
  // A second run; the row's figure is then that of `run` divided by its figure (`over`), or less its figure (`minus`).
  std::optional<PublishedRun> over, minus;
  std::optional<CurvePlace> along;  // the figure is a place on the curve of all that
  // The row is of a machine that no profile describes: it runs on this one, and its figure is shown, not judged.
  bool on_host = false;

  bool reproducible() const { return needs.empty(); }
  // A prediction of the closed-form model reproduces it, no benchmark.
  bool modelled() const { return run.benchmark.empty(); }
  // One record alone holds the figure.
  bool single() const { return !over && !minus && !along; }
  // The deviation of `figure` from the value in percent; 0 where a bound holds, and of a place on a curve within a step
  // of its values. The value is known.
  double deviation_of(double figure) const;
  // The deviation that is allowed, in percent.
  double limit_percent() const;
  // "80", ">= 0.5"; "?" when it is not known.
  std::string value_text() const;
};

std::vector<PublishedPoint> parse_published(std::string_view text, const std::string& where);
// configs/published.json.
std::vector<PublishedPoint> load_published();

// The row that this record reproduces, for every command that shows published figures: same cluster (the record ran on
// sim:CLUSTER), same benchmark, every key of the row accepted, and no other option that bears on the figure changed
// from its default. Null when there is none. Rows of several runs are no row of one record.
const PublishedPoint* find_published(const std::vector<PublishedPoint>& points, const Record& record);

// Rows that `verbscope predict` reproduces with these values (wqe_bytes, wqes) on this cluster.
std::vector<const PublishedPoint*> find_predicted(const std::vector<PublishedPoint>& points, const std::string& cluster,
                                                  const Json& values);

// "+1.2" for 1.2 % above; values that agree to the shown digit have no sign.
std::string percent_text(double percent);
// The deviation of `value` from `reference`, in percent. `reference` is not 0.
double deviation_percent(double value, double reference);

}  // namespace verbscope
