#include "harness/learn/learner.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "analysis/points.hpp"
#include "common/paths.hpp"
#include "harness/learn/design.hpp"
#include "harness/what_if/point_options.hpp"

namespace verbscope {
namespace {

// One of this many candidates is measured at first, or fewer within --points. One of this many points judges the fit.
constexpr std::size_t kFirstStride = 5, kHeldOutStride = 5;
constexpr int kLastSteps = 4;
// Largest error of a point that counts as such: more is a disturbed measurement, or a mechanism that is not simulated.
constexpr double kOutlier = 0.2;
// Fits start from this many known profiles.
constexpr std::size_t kStarts = 2;
// A round differentiates at most this many candidates.
constexpr std::size_t kScreened = 50;

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

// The median of |log error| of a profile on these figures.
double error_of(const Json& profile, const std::vector<MeasuredFigure>& measured, const CandidateFacts& facts,
                LearnPrograms& programs, std::size_t jobs, StopSource* stop) {
  SimulatedFigures simulated(profile, {}, programs, jobs, stop);
  std::vector<FitTrial> trials;
  std::vector<double> errors;
  for (const MeasuredFigure& each : measured) {
    simulated.add(each.point, each.key, each.figure, properties_of(each.point, facts));
    trials.push_back({.values = {}, .row = trials.size()});
  }
  const std::vector<double> ours = simulated.log_figures(trials);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    errors.push_back(std::isfinite(ours[i]) ? std::abs(ours[i] - std::log(measured[i].figure)) : std::log(10));
  }
  return middle_of(std::move(errors));
}

}  // namespace

std::optional<MeasuredFigure> measured_figure(const Record& record, LearnPrograms& programs) {
  const std::optional<double> figure = measured_value(record);
  if (!figure) return std::nullopt;
  return MeasuredFigure{.point = point_of(record, programs), .key = figure_key(record), .figure = *figure};
}

std::vector<StartProfile> nearest_profiles(const std::vector<std::string>& names, const ToldFacts& told,
                                           const std::vector<MeasuredFigure>& measured, const CandidateFacts& facts,
                                           LearnPrograms& programs, std::size_t jobs, StopSource* stop) {
  std::vector<StartProfile> out;
  for (const std::string& name : names) {
    const Json profile = read_json_file(find_config("clusters", name));
    if (!same_kind(profile, told)) continue;
    StartProfile candidate{.name = name, .profile = with_told(profile, told)};
    candidate.error = error_of(candidate.profile, measured, facts, programs, jobs, stop);
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
  const std::uint32_t properties = properties_of(point, facts_);
  simulated_->add(point, key, figure, properties);
  return fit_.add_row(use, std::log(figure), properties);
}

void Learner::add(const MeasuredFigure& measured, bool held_out) {
  const Point& point = measured.point;
  const double logarithm = std::log(measured.figure);
  const RowUse use = held_out ? RowUse::held_out : RowUse::fitted;
  const auto is_it = [&](const Candidate& each) {
    return each.point.benchmark == point.benchmark && each.point.params == point.params;
  };
  const auto found = static_cast<std::size_t>(std::ranges::find_if(pool_, is_it) - pool_.begin());
  std::optional<std::size_t> row;
  if (found < pool_.size()) {
    measured_[found] = true;
    row = std::exchange(candidate_rows_[found], std::nullopt);
  }
  if (row) {
    fit_.set_measured(*row, use, logarithm);
  } else {
    row = add_row(point, measured.key, measured.figure, use);
  }
  points_.push_back({measured, kind_of(point), *row});
}

double Learner::mean_error() {
  simulate_points();
  double sum = 0;
  for (const LearnedPoint& point : points_) {
    const double error = std::abs(fit_.residual(point.row));
    sum += error < kOutlier ? error : kOutlier;  // also if its run failed
  }
  return points_.empty() ? 0 : sum / static_cast<double>(points_.size());
}

void Learner::simulate_points() {
  std::vector<std::size_t> rows;
  for (const LearnedPoint& point : points_) rows.push_back(point.row);
  fit_.simulate(rows);
}

std::vector<Learner::Choice> Learner::first_choices(std::size_t most) {
  std::vector<Choice> out;
  const std::size_t stride = std::max(kFirstStride, pool_.size() / std::max<std::size_t>(1, most) + 1);
  for (std::size_t i = 0; i < pool_.size(); i += stride) {
    out.push_back({.candidate = pool_[i], .held_out = out.size() % kHeldOutStride == kHeldOutStride - 1});
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
    out.push_back({.candidate = pool_[candidate_of[row]], .held_out = false});
    std::erase(left, candidate_of[row]);
  }
  const std::size_t judges = (out.size() + kHeldOutStride - 2) / (kHeldOutStride - 1);
  for (std::size_t i = 0; i < std::min(judges, left.size()); ++i) {
    out.push_back({.candidate = pool_[left[left.size() - 1 - i]], .held_out = true});
  }
  return out;
}

void Learner::finish() {
  fit_.set_loss(Loss::cauchy);
  fit_.improve(kLastSteps);
  fit_.refresh();
  intervals_ = profile_intervals(fit_);
  simulate_points();
}

Json Learner::profile() const {
  return with_values(start_.profile, parameters_, fit_.values());
}

}  // namespace verbscope
