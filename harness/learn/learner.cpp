#include "harness/learn/learner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "analysis/keys.hpp"
#include "analysis/points.hpp"
#include "common/paths.hpp"
#include "harness/learn/design.hpp"
#include "harness/learn/point_traits.hpp"
#include "harness/learn/search.hpp"
#include "harness/learn/survey.hpp"
#include "harness/what_if/point_options.hpp"

namespace verbscope {
namespace {

// One of this many candidates is measured at first, or fewer within --points. One of this many points judges the fit.
constexpr std::size_t kFirstStride = 8, kHeldOutStride = 5;
// Largest error of a point that counts as such: more is a disturbed measurement, or a mechanism that is not simulated.
constexpr double kOutlier = 0.2;
// A point is measured again if its error is larger than this, and than this many standard deviations; up to this often.
constexpr double kLeastDoubt = 0.05, kDoubt = 4;
constexpr std::size_t kMostMeasurements = 3;
// Fits start from this many known profiles.
constexpr std::size_t kStarts = 2;
// A round differentiates at most this many candidates.
constexpr std::size_t kScreened = 100;
const double kFailed = std::log(10.0);  // error of a profile with which the run of a point fails

double middle_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

// The options that a record was measured with, as its command line gave them: a simulated copy chooses the others as
// the measurement did.
Point point_of(const Record& record, LearnPrograms& programs) {
  const Json* const point = value_at(record.config, "point");
  if (point != nullptr && !harness_text(record, "server").empty()) {
    Point out{.benchmark = record.benchmark, .params = point->value("params", Json::object())};
    for (const char* key : {"duration", "warmup", "longest"}) out.params.erase(key);
    return out;
  }
  return effective_point(record, programs.spec(record.benchmark));
}

LogFigures figures_of(SimulatedFigures& simulated) {
  return [&simulated](const std::vector<FitTrial>& trials) { return simulated.log_figures(trials); };
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The median of |log error| of a profile on these figures. Figures of a group are compared with their mean.
double error_of(const Json& profile, const std::vector<MeasuredFigure>& measured, const CandidateFacts& facts,
                LearnPrograms& programs, std::size_t jobs, StopSource* stop) {
  SimulatedFigures simulated(profile, {}, programs, jobs, stop);
  std::vector<FitTrial> trials;
  for (const MeasuredFigure& each : measured) {
    simulated.add(each.point, each.key, each.figure, properties_of(each.point, facts.mtu));
    trials.push_back({.values = {}, .row = trials.size()});
  }
  const std::vector<double> ours = simulated.log_figures(trials);
  std::vector<double> errors;
  std::map<std::string, std::vector<double>> groups;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double error = ours[i] - std::log(measured[i].figure);
    if (!std::isfinite(error))
      errors.push_back(kFailed);
    else if (measured[i].group.empty())
      errors.push_back(std::abs(error));
    else
      groups[measured[i].group].push_back(error);
  }
  for (const auto& [name, of_group] : groups) {
    const double mean = mean_of(of_group);
    for (const double error : of_group) errors.push_back(std::abs(error - mean));
  }
  return middle_of(std::move(errors));
}

}  // namespace

std::optional<MeasuredFigure> measured_figure(const Record& record, LearnPrograms& programs) {
  const std::optional<double> figure = measured_value(record);
  if (!figure) return std::nullopt;
  return MeasuredFigure{.point = point_of(record, programs),
                        .key = figure_key(record),
                        .figure = *figure,
                        .server = harness_text(record, "server")};
}

UsualFigure usual_figure(const std::vector<MeasuredFigure>& figures) {
  std::vector<double> sorted;
  for (const MeasuredFigure& each : figures) sorted.push_back(each.figure);
  std::ranges::sort(sorted);
  if (!is_latency(figures.front().key)) std::ranges::reverse(sorted);  // the fastest first
  std::size_t first = 0, most = 0;                                     // of the largest run of figures that agree
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    std::size_t end = i;
    while (end < sorted.size() && std::abs(std::log(sorted[end] / sorted[i])) < kHostsDiffer) ++end;
    if (end - i > most) std::tie(first, most) = std::pair(i, end - i);
  }
  const double low = sorted[first + (most - 1) / 2], high = sorted[first + most / 2];
  return {.figure = (low + high) / 2, .confirmed = most > 1};
}

std::vector<StartProfile> nearest_profiles(const std::vector<std::string>& names, const ToldFacts& told,
                                           const std::vector<MeasuredFigure>& measured, const CandidateFacts& facts,
                                           LearnPrograms& programs, std::size_t jobs, StopSource* stop) {
  std::vector<StartProfile> out;
  for (const std::string& name : names) {
    const Json profile = read_json_file(find_config("clusters", name));
    if (!same_kind(profile, told)) continue;
    StartProfile candidate{.name = name, .profile = with_told(profile, told)};
    const auto begin = std::chrono::steady_clock::now();
    candidate.error = error_of(candidate.profile, measured, facts, programs, jobs, stop);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    candidate.seconds = took.count() * static_cast<double>(jobs) / static_cast<double>(measured.size());
    out.push_back(std::move(candidate));
  }
  if (out.empty()) {
    fail_usage("no profile of an adapter of the family {} on such a network to start from; give one with --like",
               plain_text(told.values.value("wire.nic_family", Json("unknown"))));
  }
  std::ranges::sort(out, {}, &StartProfile::error);
  if (out.size() > kStarts) out.resize(kStarts);
  return out;
}

Learner::Learner(StartProfile start, CandidateFacts facts, LearnPrograms& programs, std::size_t jobs,
                 std::uint64_t seed, StopSource* stop)
    : start_(std::move(start)),
      facts_(facts),
      programs_(programs),
      seed_(seed),
      parameters_(parameters_to_learn(start_.profile)),
      simulated_(std::make_unique<SimulatedFigures>(start_.profile, parameters_, programs, jobs, stop)),
      fit_(parameters_, figures_of(*simulated_), {}),
      pool_(candidate_points(facts)),
      candidate_rows_(pool_.size()),
      measured_(pool_.size()) {}

std::size_t Learner::add_row(const Point& point, const std::string& key, double figure, RowUse use) {
  const std::uint32_t properties = properties_of(point, facts_.mtu);
  simulated_->add(point, key, figure, properties);
  return fit_.add_row(use, std::log(figure), properties);
}

std::size_t Learner::add_point(const MeasuredFigure& measured, RowUse use) {
  const auto is_it = [&](const Candidate& each) { return same_point(each.point, measured.point); };
  const auto found = static_cast<std::size_t>(std::ranges::find_if(pool_, is_it) - pool_.begin());
  if (found == pool_.size()) return add_row(measured.point, measured.key, measured.figure, use);
  measured_[found] = true;
  const std::optional<std::size_t> row = std::exchange(candidate_rows_[found], std::nullopt);
  return row ? *row : add_row(measured.point, measured.key, measured.figure, use);
}

void Learner::add(const MeasuredFigure& measured, bool held_out) {
  const RowUse use = held_out ? RowUse::held_out : RowUse::fitted;
  const auto is_it = [&](const LearnedPoint& each) {
    const MeasuredFigure& first = each.measured.front();
    return same_point(each.point, measured.point) && first.key == measured.key && first.group == measured.group;
  };
  auto found = std::ranges::find_if(points_, is_it);
  if (found == points_.end()) {
    const std::size_t row = add_point(measured, use);
    found = points_.insert(found, {measured.point, {}, kind_of(measured.point), row});
    fit_.set_measured(row, use, 0, false);
    if (!measured.group.empty()) fit_.set_group(row, group_number(measured.group));
  }
  found->measured.push_back(measured);
  set_measured(*found);
}

void Learner::set_measured(const LearnedPoint& point) {
  const UsualFigure usual = usual_figure(point.measured);
  fit_.set_measured(point.row, fit_.use(point.row), std::log(usual.figure), usual.confirmed);
}

std::size_t Learner::group_number(const std::string& group) {
  const auto found = std::ranges::find(groups_, group);
  const auto number = static_cast<std::size_t>(found - groups_.begin());
  if (found == groups_.end()) groups_.push_back(group);
  return number;
}

void Learner::fit_roughly(int steps) {
  search_roughly(fit_, steps);
}

void Learner::fit_thoroughly(int steps) {
  search_thoroughly(fit_, steps);
}

void Learner::fit(int steps) {
  fit_.correct();
  fit_.improve(steps);
}

double Learner::mean_error() {
  fit_.simulate(point_rows());
  double sum = 0;
  for (const LearnedPoint& point : points_) {
    const double error = std::abs(fit_.residual(point.row));
    sum += error < kOutlier ? error : kOutlier;  // also if its run failed
  }
  return points_.empty() ? 0 : sum / static_cast<double>(points_.size());
}

std::vector<std::size_t> Learner::point_rows() const {
  std::vector<std::size_t> out;
  for (const LearnedPoint& point : points_) out.push_back(point.row);
  return out;
}

std::vector<Learner::Choice> Learner::first_choices(std::size_t most) {
  std::vector<Choice> out;
  const std::size_t stride = std::max(kFirstStride, pool_.size() / std::max<std::size_t>(1, most) + 1);
  for (std::size_t i = 0; i < pool_.size(); i += stride) {
    out.push_back({.point = pool_[i].point, .held_out = out.size() % kHeldOutStride == kHeldOutStride - 1});
  }
  return out;
}

std::vector<Learner::Choice> Learner::doubtful_points(std::size_t count) const {
  const double usual = std::max(kLeastDoubt, kDoubt * fit_.scale());
  std::vector<std::pair<double, const LearnedPoint*>> found;
  for (const LearnedPoint& each : points_) {
    const double error = std::abs(fit_.residual(each.row));
    const bool judges = fit_.use(each.row) == RowUse::held_out;
    if (!judges && error > usual && each.measured.size() < kMostMeasurements) found.emplace_back(error, &each);
  }
  std::ranges::sort(found, std::greater(), [](const auto& each) { return each.first; });
  std::vector<Choice> out;
  for (std::size_t i = 0; i < std::min(count, found.size()); ++i) {
    const LearnedPoint& point = *found[i].second;
    out.push_back({.point = point.point, .held_out = false});
    for (const MeasuredFigure& each : point.measured) out.back().measured_on.push_back(each.server);
  }
  return out;
}

std::vector<std::size_t> Learner::unmeasured() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    if (!measured_[i]) out.push_back(i);
  }
  return out;
}

std::vector<Learner::Choice> Learner::next_choices(std::size_t count) {
  const std::vector<std::size_t> uncertain = uncertain_parameters(fit_, fit_.covariance());
  std::vector<std::size_t> left = unmeasured();
  std::mt19937_64 random(seed_ + points_.size());
  std::ranges::shuffle(left, random);
  if (left.empty() || uncertain.empty()) return {};
  std::vector<std::size_t> rows,
      screened(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(std::min(left.size(), kScreened)));
  std::vector<std::size_t> candidate_of(fit_.rows() + screened.size());
  for (const std::size_t i : screened) {
    if (!candidate_rows_[i]) {
      const double expected = expected_figure(pool_[i].point);
      candidate_rows_[i] = add_row(pool_[i].point, figure_key(pool_[i].point), expected, RowUse::candidate);
    }
    rows.push_back(*candidate_rows_[i]);
    candidate_of[rows.back()] = i;
  }
  fit_.differentiate(rows, [&uncertain](std::size_t p) { return std::ranges::binary_search(uncertain, p); });
  std::vector<Choice> out;
  for (const std::size_t row : best_rows(fit_, rows, uncertain, count - count / kHeldOutStride)) {
    out.push_back({.point = pool_[candidate_of[row]].point, .held_out = false});
    std::erase(left, candidate_of[row]);
  }
  const std::size_t judges = (out.size() + kHeldOutStride - 2) / (kHeldOutStride - 1);
  for (std::size_t i = 0; i < std::min(judges, left.size()); ++i) {
    out.push_back({.point = pool_[left[left.size() - 1 - i]].point, .held_out = true});
  }
  return out;
}

void Learner::finish() {
  intervals_ = finish_search(fit_);
  fit_.simulate(point_rows());
}

Json Learner::profile() const {
  return with_values(start_.profile, parameters_, fit_.values());
}

}  // namespace verbscope
