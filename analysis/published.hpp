// The table of published figures (configs/published.json), and the records or predictions that reproduce its rows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"

namespace verbscope {

inline constexpr const char* kPublishedSchema = "verbscope.published/1";

// Allowed deviation in percent of a figure that a parameter was calibrated on, and of a predicted one. A row can have
// its own limit.
inline constexpr double kCalibratedPercent = 3;
inline constexpr double kPredictedPercent = 10;

// One option of a row's `match`: "threads": 8, or "threads": {"min": 8, "max": 14, "run": 14}.
struct MatchKey {
  std::string key;
  Json run;  // value to run with; without a range also the value to match
  bool range = false;
  double min = 0, max = 0;

  bool accepts(const Json& value) const;
};

// A run that produces a figure: a benchmark on the row's cluster, or `verbscope predict` (then `benchmark` is empty).
// `result_key`: key in record.result or in the prediction.
struct PublishedRun {
  std::string benchmark, result_key;
  std::vector<MatchKey> keys;

  // The options to run it with.
  Json params() const;
  // Options without effect on the figure, such as the duration, may have any value.
  bool accepts(const Json& values) const;
};

// Required relation of a figure to the published value.
enum class Comparison { equals, at_least, at_most };
const char* to_string(Comparison comparison);

// How a figure follows from the figures a and b of two runs: a / b, a - b, and by how many percent a is above or below
// b.
enum class Combination { ratio, difference, percent_above, percent_below };
double combined(Combination combination, double a, double b);

// For a figure that is a position on a curve. The curve is the row's run, or its ratio to a second one, for each value
// of an option.
struct CurvePlace {
  enum class Kind {
    reaches,    // the first value with at least kPeakShare of the curve's peak
    holds,      // the last value before the curve falls below that share
    overtakes,  // the first value from which the curve stays at 1 or above
  };
  static constexpr double kPeakShare = 0.9;

  std::string option;
  std::vector<double> values;  // ascending
  Kind kind = Kind::reaches;

  // The position on a curve with these figures at `values`; nothing if the curve has no such position.
  std::optional<double> find_position(const std::vector<double>& figures) const;
};

struct PublishedPoint {
  std::string id, paper, where, cluster, what, metric, bottleneck;
  double value = 0;  // 0: unknown (nothing reproduces this row)
  Comparison comparison = Comparison::equals;
  std::optional<double> tolerance_percent;  // the row's own limit
  bool calibration = false;                 // a simulator parameter may be calibrated on it; else only for checks
  std::string needs;                        // why it cannot be reproduced; empty if it can
  bool slow = false;                        // a run takes more than a few seconds: `validate --sample` leaves it out
  std::string known_miss;                   // why the simulator misses it; empty if that is not known
  PublishedRun run;
  Json profile = Json::object();       // of its cluster: parameters with other values, {"wire.mtu_bytes": 2048}
  std::optional<PublishedRun> second;  // the figure then follows from those of `run` and of this one
  Combination combination = Combination::ratio;
  std::optional<CurvePlace> along;  // the figure is a position on the resulting curve
  // The row's machine has no profile: the row runs on the present host, and its figure is shown but not judged.
  bool on_host = false;

  bool reproducible() const { return needs.empty(); }
  // True if a closed-form prediction reproduces it, not a benchmark.
  bool modelled() const { return run.benchmark.empty(); }
  // True if a single record contains the figure.
  bool single() const { return !second && !along; }
  // Deviation of `figure` from the value in percent. 0 if a bound holds, or if a position on a curve is within one step
  // of its values. Precondition: the value is known.
  double deviation_of(double figure) const;
  // The same without the step.
  double exact_deviation_of(double figure) const;
  // Allowed deviation in percent.
  double limit_percent() const;
  // "80", ">= 0.5"; "?" if unknown.
  std::string value_text() const;
};

std::vector<PublishedPoint> parse_published(std::string_view text, const std::string& where);
// Reads configs/published.json.
std::vector<PublishedPoint> load_published();

// The row that this record reproduces, or null. Conditions: the record ran on sim:CLUSTER of the row's cluster with the
// same benchmark; the row accepts every key; no other option that affects the figure differs from its default. Never a
// row that needs several runs. Every command that shows published figures uses this function.
const PublishedPoint* find_published(const std::vector<PublishedPoint>& points, const Record& record);

// Rows that `verbscope predict` reproduces on this cluster with these values (wqe_bytes, wqes).
std::vector<const PublishedPoint*> find_predicted(const std::vector<PublishedPoint>& points, const std::string& cluster,
                                                  const Json& values);

// "+1.2" for 1.2 % above. No sign if the shown digits are zero.
std::string percent_text(double percent);
// Deviation of `value` from `reference` in percent. Precondition: `reference` is not 0.
double deviation_percent(double value, double reference);

}  // namespace verbscope
