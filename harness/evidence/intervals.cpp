#include "harness/evidence/intervals.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "analysis/keys.hpp"

namespace verbscope {
namespace {

std::string quantity_of(const PublishedPoint& point) {
  constexpr std::int64_t kPage = 4096, kLarge = 65536;
  if (point.along) return "place on a curve";
  if (point.second) return point.combination == Combination::ratio ? "ratio" : "difference";
  const std::int64_t size = point.run.params().value("size", std::int64_t{0});
  if (is_latency(point.run.result_key)) {
    return size < kPage ? "latency below 4 KB" : "latency of 4 KB and more";
  }
  return size < kLarge ? "rate below 64 KB" : "rate of 64 KB and more";
}

bool is_exact(const EvidenceOutcome& outcome) {
  return outcome.row->point.comparison == Comparison::equals;
}

// Our figure on the scale of the row's value: shapes are compared after a division by the medians of their group.
double figure_on_scale(const EvidenceOutcome& outcome) {
  return outcome.row->by_shape ? outcome.row->point.value * (1 + *outcome.error_percent / 100) : *outcome.ours;
}

struct PredictionError {
  std::string source, kind, cluster;
  double log = 0;

  explicit PredictionError(const EvidenceOutcome& outcome)
      : source(outcome.row->point.paper + " " + outcome.row->point.where),
        kind(kind_of(*outcome.row)),
        cluster(outcome.row->point.cluster),
        log(std::log(figure_on_scale(outcome) / outcome.row->point.value)) {}
};

// The errors to expect of a row like `own`, ascending.
std::vector<double> errors_like(const PredictionError& own, const std::vector<PredictionError>& all) {
  const auto same_kind = [&own](const PredictionError& each) { return each.kind == own.kind; };
  const auto same_cluster = [&](const PredictionError& each) { return same_kind(each) && each.cluster == own.cluster; };
  const auto any = [](const PredictionError&) { return true; };
  std::vector<double> errors;
  for (const std::function<bool(const PredictionError&)>& alike :
       std::array<std::function<bool(const PredictionError&)>, 3>{same_cluster, same_kind, any}) {
    errors.clear();
    for (const PredictionError& each : all) {
      if (each.source != own.source && alike(each)) errors.push_back(each.log);
    }
    if (errors.size() >= kMinErrors) break;
  }
  std::ranges::sort(errors);
  return errors;
}

}  // namespace

std::string kind_of(const EvidenceRow& row) {
  return fmt::format("{} {}{}", row.columns.empty() ? "published" : "measured", quantity_of(row.point),
                     row.by_shape ? " (shape)" : "");
}

bool carries_interval(const EvidenceOutcome& outcome) {
  const PublishedPoint& point = outcome.row->point;
  return outcome.error_percent && !point.calibration && !point.modelled() && figure_on_scale(outcome) > 0;
}

void add_intervals(std::vector<EvidenceOutcome>& outcomes) {
  std::vector<PredictionError> all;
  for (const EvidenceOutcome& each : outcomes) {
    if (carries_interval(each) && is_exact(each)) all.emplace_back(each);
  }
  for (EvidenceOutcome& each : outcomes) {
    if (!carries_interval(each)) continue;
    const std::vector<double> errors = errors_like(PredictionError(each), all);
    if (errors.size() < kMinErrors) continue;
    const std::size_t rank = (errors.size() + 1) * (100 - kIntervalPercent) / 200;
    const double figure = figure_on_scale(each);
    each.interval = {.low = figure / std::exp(errors[errors.size() - rank]),
                     .high = figure / std::exp(errors[rank - 1])};
  }
}

Coverage coverage_of(const std::vector<const EvidenceOutcome*>& outcomes) {
  Coverage coverage;
  for (const EvidenceOutcome* each : outcomes) {
    if (!each->interval || !is_exact(*each)) continue;
    const double value = each->row->point.value;
    ++coverage.rows;
    if (each->interval->low <= value && value <= each->interval->high) ++coverage.inside;
  }
  return coverage;
}

}  // namespace verbscope
