// The table of published figures (configs/published.json), and which record or prediction reproduces which row.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"

namespace verbscope {

inline constexpr const char* kPublishedSchema = "verbscope.published/1";

// One option of a row's `match`: "threads": 8, or "threads": {"min": 8, "max": 14, "run": 14}.
struct MatchKey {
  std::string key;
  Json run;  // the value to run it with, and the one to match when there is no range
  bool range = false;
  double min = 0, max = 0;

  bool accepts(const Json& value) const;
};

struct PublishedPoint {
  std::string id, paper, where, cluster, what, metric, bottleneck;
  double value = 0;
  bool calibration = false;  // a simulator parameter may be fitted to it; else it only checks
  std::string needs;         // the thing that is missing to reproduce it; empty: nothing is
  // The figure is reproduced by this benchmark on the cluster, or by `verbscope predict` (benchmark empty).
  // `result_key` is the key of record.result, or of the prediction.
  std::string benchmark, result_key;
  std::vector<MatchKey> keys;

  bool reproducible() const { return needs.empty(); }
  // The options to run it with.
  Json run_params() const;
};

std::vector<PublishedPoint> parse_published(std::string_view text, const std::string& where);
// configs/published.json.
std::vector<PublishedPoint> load_published();

// The row that this record reproduces: same cluster (the record ran on sim:CLUSTER), same benchmark, every key
// accepted. Null when there is none.
const PublishedPoint* find_published(const std::vector<PublishedPoint>& points, const Record& record);

// Rows that `verbscope predict` reproduces with these values (wqe_bytes, wqes) on this cluster.
std::vector<const PublishedPoint*> find_predicted(const std::vector<PublishedPoint>& points, const std::string& cluster,
                                                  const Json& values);

// "+1.2" for 1.2 % above; values that agree to the shown digit have no sign.
std::string percent_text(double percent);
// The deviation of `value` from `reference`, in percent. `reference` is not 0.
double deviation_percent(double value, double reference);

}  // namespace verbscope
