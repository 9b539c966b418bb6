#include "harness/learn/learned.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analysis/points.hpp"
#include "analysis/text_table.hpp"
#include "harness/evidence/evidence.hpp"

namespace verbscope {
namespace {

// A point is unexplained if its error is this many standard deviations, and at least this large.
constexpr double kUnexplained = 6, kLeastUnexplained = 0.1;

KindError kind_error(const std::string& kind, const std::vector<double>& percents) {
  const ErrorFigures figures = error_figures(percents);
  return {.kind = kind, .points = figures.rows, .median = figures.median, .percentile_90 = figures.percentile_90};
}

double percent_off(const RobustFit& fit, std::size_t row) {
  return (std::exp(-fit.residual(row)) - 1) * 100;
}

double start_value(const StartProfile& start, const std::string& name) {
  return value_at(start.profile, name)->at("value").get<double>();
}

std::string interval_text(const LearnedValue& value) {
  return fmt::format("{:.4g} to {:.4g}", value.interval.low, value.interval.high);
}

std::string point_text(const LearnedPoint& point) {
  std::string text = point.point.benchmark;
  for (const auto& [key, value] : point.point.params.items()) text += fmt::format(" {}={}", key, plain_text(value));
  return text;
}

}  // namespace

Learned learned_by(const Learner& learner) {
  const RobustFit& fit = learner.figures();
  Learned out;
  const std::vector<double> values = fit.values();
  for (std::size_t p = 0; p < values.size(); ++p) {
    const FitParameter& parameter = fit.parameters()[p];
    out.values.push_back(
        {.parameter = parameter, .value = rounded_value(parameter, values[p]), .interval = learner.intervals()[p]});
  }
  out.scale_percent = fit.scale() * 100;
  std::map<std::string, std::vector<double>> by_kind;
  std::vector<double> all;
  for (const LearnedPoint& point : learner.points()) {
    const double off = percent_off(fit, point.row), size = std::abs(fit.residual(point.row));
    const bool judges = fit.use(point.row) == RowUse::held_out, failed = !std::isfinite(off);
    ++(judges ? out.held_out : out.fitted);
    if (judges && !failed) {
      by_kind[point.kind].push_back(off);
      all.push_back(off);
    } else if (failed || size > std::max(kLeastUnexplained, kUnexplained * fit.scale())) {
      out.unexplained.push_back({.point = &point, .error_percent = off});
    }
  }
  for (const auto& [kind, errors] : by_kind) out.errors.push_back(kind_error(kind, errors));
  if (!all.empty()) out.errors.push_back(kind_error("all", all));
  std::ranges::sort(out.unexplained, std::greater(), [](const Unexplained& each) {
    return std::isfinite(each.error_percent) ? std::abs(each.error_percent) : std::numeric_limits<double>::infinity();
  });
  return out;
}

Json learned_profile(const Learner& learner, const Learned& learned, const LearnedProvenance& provenance) {
  Json profile = learner.profile();
  const StartProfile& start = learner.start();
  profile["name"] = provenance.name;
  profile["description"] =
      fmt::format("learned from {} points of {}, from the profile {}", learned.fitted, provenance.records, start.name);
  for (const LearnedValue& each : learned.values) {
    const std::size_t dot = each.parameter.name.find('.');
    Json& parameter = profile.at(each.parameter.name.substr(0, dot)).at(each.parameter.name.substr(dot + 1));
    const Json value = parameter.at("value"), interval = Json::array({each.interval.low, each.interval.high});
    if (each.interval.identified) {
      parameter = Json{{"value", value},
                       {"source", "learned"},
                       {"row", provenance.records},
                       {"interval", interval},
                       {"cite", "fitted by verbscope learn; the interval is that of 95 %"}};
    } else if (value.get<double>() != start_value(start, each.parameter.name)) {
      parameter = Json{{"value", value},
                       {"source", "assumed"},
                       {"interval", interval},
                       {"cite", fmt::format("not identified by {}: {} has {:g}", provenance.records, start.name,
                                            each.parameter.start)}};
    }
  }
  Json errors = Json::object();
  for (const KindError& each : learned.errors) {
    errors[each.kind] =
        Json{{"points", each.points}, {"median_percent", each.median}, {"percentile_90_percent", each.percentile_90}};
  }
  profile["learned"] = Json{{"records", provenance.records},
                            {"start", start.name},
                            {"fitted_points", learned.fitted},
                            {"held_out", errors},
                            {"hosts_left_out", provenance.slow_hosts}};
  return profile;
}

std::string learned_text(const Learner& learner, const Learned& learned, std::size_t width) {
  TextTable values(
      {{"", {{"parameter", true}}}, {"value", {{learner.start().name}, {"learned"}}}, {"", {{"95 % interval"}}}});
  std::string unknown;
  for (const LearnedValue& each : learned.values) {
    if (each.interval.identified) {
      values.add_row({each.parameter.name, fmt::format("{:g}", each.parameter.start), fmt::format("{:g}", each.value),
                      interval_text(each)});
    } else {
      unknown += fmt::format("  {} ({})\n", each.parameter.name, interval_text(each));
    }
  }
  TextTable errors(
      {{"", {{"points that judge the fit", true}}}, {"", {{"number"}}}, {"error in %", {{"median"}, {"90 %"}}}});
  for (const KindError& each : learned.errors) {
    errors.add_row({each.kind, fmt::format("{}", each.points), fmt::format("{:.1f}", each.median),
                    fmt::format("{:.1f}", each.percentile_90)});
  }
  std::string text = values.text(width);
  if (!unknown.empty()) text += "\nnot identified by these points (95 % interval):\n" + unknown;
  text += "\n" + errors.text(width);
  text += fmt::format("\nusual error of a fitted point: {:.1f} %\n", learned.scale_percent);
  if (!learned.unexplained.empty())
    text +=
        "points that the fit does not explain; a mechanism that verbscope does not know, or a disturbed measurement?\n";
  for (const Unexplained& each : learned.unexplained)
    text += fmt::format(
        "  {}  {}\n",
        std::isfinite(each.error_percent) ? fmt::format("{:+.0f} %", each.error_percent) : "its simulation failed:",
        point_text(*each.point));
  return text;
}

}  // namespace verbscope
