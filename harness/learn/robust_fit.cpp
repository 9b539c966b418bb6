#include "harness/learn/robust_fit.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "common/error.hpp"

namespace verbscope {
namespace {

constexpr double kLongestStep = 0.7;  // of a coordinate: a factor of two
// Both losses have 95 % of the efficiency of squares for normal errors with these constants (Huber, 1964; Rey, 1983).
constexpr double kHuber = 1.345, kCauchy = 2.385;
constexpr double kLeastFreedom = 0.1;  // of a residual: 1 - leverage, at least
constexpr double kNormalMad = 1.4826;  // standard deviation of a normal variable / its median absolute deviation
// Error of the linear prediction of a row's change that is no reason for new derivatives: after a step that was no use,
// and after a good one.
constexpr double kPoorLine = 0.03, kVeryPoorLine = 0.1;
constexpr double kFirstDamping = 0.01, kDampingFactor = 3;
constexpr int kAttempts = 5;
constexpr double kShortStep = 0.05;   // of each coordinate: what such a step does not foretell is noise
constexpr double kScanStep = 0.35;    // of the size's logarithm: a factor of 1.4
constexpr int kScanSteps = 6;         // in either direction: a factor of 8
constexpr double kFailedShare = 0.1;  // of the runs of a step: more are a fault of its values

// Cholesky's decomposition of a symmetric positive definite matrix.
Eigen::LLT<Matrix> decomposed(const Matrix& matrix) {
  Eigen::LLT<Matrix> out(matrix);
  if (out.info() != Eigen::Success) fail("the matrix of the fit is not positive definite");
  return out;
}

Vector present_derivatives(const LinearRows::Row& row) {
  return row.derivatives;
}

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace

RobustFit::RobustFit(std::vector<FitParameter> parameters, LogFigures figures, const RobustFitOptions& options)
    : linear_(std::move(parameters), std::move(figures)),
      options_(options),
      start_(linear_.coordinates()),
      held_(linear_.parameters().size()) {}

std::size_t RobustFit::add_row(RowUse use, double log_measured, std::uint32_t properties) {
  rows_.push_back({.use = use, .measured = log_measured});
  return linear_.add(properties);
}

void RobustFit::set_measured(std::size_t row, RowUse use, double log_measured, bool confirmed) {
  rows_[row].use = use;
  rows_[row].confirmed = confirmed;
  rows_[row].measured = log_measured;
}

void RobustFit::set_group(std::size_t row, std::size_t group) {
  if (group >= groups_.size()) groups_.resize(group + 1);
  groups_[group].push_back(row);
  rows_[row].group = group;
}

std::vector<std::size_t> RobustFit::peers(std::size_t row) const {
  std::vector<std::size_t> out;
  if (!rows_[row].group) return out;
  std::ranges::copy_if(groups_[*rows_[row].group], std::back_inserter(out), [&](std::size_t i) { return counts(i); });
  return out;
}

double RobustFit::factor(std::size_t row, const std::vector<double>& simulated) const {
  const std::vector<std::size_t> group = peers(row);
  double sum = 0;
  for (const std::size_t i : group) sum += simulated[i] - measured(i);
  return group.empty() ? 0 : sum / static_cast<double>(group.size());
}

double RobustFit::factor(std::size_t row) const {
  return rows_[row].group ? factor(row, linear_.figures_at(coordinates(), {})) : 0;
}

Vector RobustFit::derivatives(std::size_t row) const {
  return derivatives(row, present_derivatives);
}

Vector RobustFit::derivatives(std::size_t row, const DerivativesOf& of) const {
  const std::vector<std::size_t> group = peers(row);
  Vector out = of(linear_[row]);
  for (const std::size_t i : group) out -= of(linear_[i]) / static_cast<double>(group.size());
  return out;
}

std::vector<std::size_t> RobustFit::rows_if(const std::function<bool(std::size_t)>& wanted) const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (wanted(i)) out.push_back(i);
  }
  return out;
}

std::vector<std::size_t> RobustFit::fitted_rows() const {
  return rows_if([this](std::size_t row) { return use(row) == RowUse::fitted; });
}

std::vector<std::size_t> RobustFit::counted_rows() const {
  return rows_if([this](std::size_t row) { return counts(row); });
}

bool RobustFit::correct() {
  return linear_.correct(rows_if([this](std::size_t row) { return use(row) != RowUse::candidate; }));
}

bool RobustFit::counts(std::size_t row) const {
  return use(row) == RowUse::fitted && linear_[row].has_derivatives && std::isfinite(simulated(row));
}

double RobustFit::scale() const {
  if (options_.error > 0) return options_.error;
  const std::vector<std::size_t> rows = counted_rows();
  if (rows.empty()) return options_.least_error;
  std::vector<double> sizes;
  for (const std::size_t row : rows) sizes.push_back(std::abs(residual(row)));
  const double plain = std::max(options_.least_error, kNormalMad * middle(sizes));
  const Matrix covariant = covariance(plain);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double leverage = weight(rows[i], plain) * derivatives(rows[i]).dot(covariant * derivatives(rows[i]));
    sizes[i] /= std::sqrt(std::max(kLeastFreedom, 1 - leverage));
  }
  return std::max(options_.least_error, kNormalMad * middle(std::move(sizes)));
}

double RobustFit::variance(std::size_t row, double scale) const {
  return scale * scale + linear_[row].noise * linear_[row].noise;
}

Loss RobustFit::loss_of(std::size_t row) const {
  return rows_[row].confirmed && options_.loss == Loss::cauchy ? Loss::huber : options_.loss;
}

double RobustFit::loss_of(std::size_t row, double residual, double variance) const {
  const double size = std::abs(residual) / std::sqrt(variance);
  const Loss loss = loss_of(row);
  if (loss == Loss::cauchy) return kCauchy * kCauchy * std::log1p(size * size / (kCauchy * kCauchy));
  return loss == Loss::squares || size < kHuber ? size * size : 2 * kHuber * size - kHuber * kHuber;
}

double RobustFit::weight(std::size_t row, double scale) const {
  const double v = variance(row, scale), size = std::abs(residual(row)) / std::sqrt(v);
  const Loss loss = loss_of(row);
  if (loss == Loss::cauchy) return 1 / (v * (1 + size * size / (kCauchy * kCauchy)));
  return loss == Loss::squares ? 1 / v : std::min(1.0, kHuber / size) / v;
}

double RobustFit::cost(double scale) const {
  return cost_of(linear_.figures_at(coordinates(), {}), coordinates(), scale);
}

double RobustFit::cost_of(const std::vector<double>& simulated, const Vector& x, double scale) const {
  double sum = options_.known_within > 0 ? ((x - start_) / options_.known_within).squaredNorm() : 0;
  std::vector<double> figures = simulated;
  for (std::size_t row = 0; row < figures.size(); ++row) {
    if (!std::isfinite(figures[row])) figures[row] = linear_[row].simulated;  // a failed run says nothing
  }
  for (const std::size_t row : counted_rows())
    sum += loss_of(row, measured(row) + factor(row, figures) - figures[row], variance(row, scale));
  return sum;
}

bool RobustFit::too_many_fail(const std::vector<std::size_t>& rows, const std::vector<double>& figures) const {
  const auto failed =
      std::ranges::count_if(rows, [&](std::size_t row) { return counts(row) && !std::isfinite(figures[row]); });
  return static_cast<double>(failed) > kFailedShare * static_cast<double>(fitted_rows().size());
}

std::optional<std::vector<double>> RobustFit::figures_at(const Vector& x) const {
  const std::vector<std::size_t> rows = fitted_rows();
  std::vector<double> out = linear_.figures_at(x, rows);
  return too_many_fail(rows, out) ? std::nullopt : std::optional(std::move(out));
}

Matrix RobustFit::information(double scale, const DerivativesOf& of) const {
  Matrix out = Matrix::Zero(start_.size(), start_.size());
  for (const std::size_t row : counted_rows()) {
    const Vector slope = derivatives(row, of);
    out += weight(row, scale) * slope * slope.transpose();
  }
  if (options_.known_within > 0) out.diagonal().array() += 1 / (options_.known_within * options_.known_within);
  return out;
}

Matrix RobustFit::covariance() const {
  return covariance(scale());
}

Matrix RobustFit::covariance(double scale) const {
  return decomposed(information(scale, present_derivatives)).solve(Matrix::Identity(start_.size(), start_.size()));
}

Vector RobustFit::covariance_beside_kinks(std::size_t parameter, double scale) const {
  const auto of = [parameter](const LinearRows::Row& row) {
    Vector out = row.steeper;
    out(parameter) = row.derivatives(parameter);
    return out;
  };
  return decomposed(information(scale, of)).solve(Vector::Unit(start_.size(), static_cast<Eigen::Index>(parameter)));
}

RobustFit::Step RobustFit::step(double damping, double scale) const {
  Matrix matrix = information(scale, present_derivatives);
  Vector pull = Vector::Zero(start_.size());
  for (const std::size_t row : counted_rows()) pull += weight(row, scale) * residual(row) * derivatives(row);
  if (options_.known_within > 0) pull -= (coordinates() - start_) / (options_.known_within * options_.known_within);
  for (Eigen::Index p = 0; p < pull.size(); ++p) {
    if (!held_[static_cast<std::size_t>(p)]) continue;
    matrix.row(p) = matrix.col(p) = Vector::Unit(pull.size(), p);
    pull(p) = 0;
  }
  Matrix damped = matrix;
  damped.diagonal() = damped.diagonal().array() * (1 + damping) + damping;
  const Vector moved = decomposed(damped).solve(pull).cwiseMin(kLongestStep).cwiseMax(-kLongestStep);
  const Vector to = linear_.within_range(coordinates() + moved) - coordinates();
  return {.moved = to, .gain = 2 * pull.dot(to) - to.dot(matrix * to)};
}

std::vector<std::size_t> RobustFit::poor_rows(const Vector& moved, const std::vector<double>& simulated,
                                              double line) const {
  return linear_.poor(fitted_rows(), moved, simulated, std::max(line, scale() / 2));
}

void RobustFit::accept(const Vector& to, const std::vector<double>& simulated) {
  linear_.move(to, fitted_rows(), simulated, poor_rows(to - coordinates(), simulated, kVeryPoorLine));
}

// Returns true if the step gained enough.
bool RobustFit::try_step(double& damping) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double scale_now = scale(), before = cost(scale_now);
    const Step next = step(damping, scale_now);
    if (attempt > 0 && next.gain < kEnoughGain * before) return false;
    const Vector to = coordinates() + next.moved;
    damping = std::max(damping, kFirstDamping) * kDampingFactor;
    const std::optional<std::vector<double>> simulated = figures_at(to);
    if (!simulated) continue;
    const double after = cost_of(*simulated, to, scale_now);
    if (after < before) {
      damping /= kDampingFactor * kDampingFactor;
      accept(to, *simulated);
      return before - after > kEnoughGain * before;
    }
    // On the side of this step the derivatives differ.
    const std::vector<std::size_t> poor = poor_rows(next.moved, *simulated, kPoorLine);
    if (next.moved.cwiseAbs().maxCoeff() < kShortStep) {
      linear_.learn_noise(counted_rows(), next.moved, *simulated);  // no linear step foretells it
    } else {
      linear_.differentiate(poor, next.moved);
    }
    if (poor.empty()) damping *= kDampingFactor;
  }
  return false;
}

bool RobustFit::move_to(const Vector& at) {
  const Vector to = linear_.within_range(at);
  const std::optional<std::vector<double>> simulated = figures_at(to);
  if (!simulated) return false;
  accept(to, *simulated);
  return true;
}

bool RobustFit::move_to_similar(const Vector& at) {
  const Vector to = linear_.within_range(at);
  const std::optional<std::vector<double>> figures = figures_at(to);
  if (!figures) return false;
  std::vector<std::size_t> changed = fitted_rows();
  std::erase_if(changed, [&](std::size_t row) { return std::abs((*figures)[row] - simulated(row)) < kVeryPoorLine; });
  linear_.move_to_similar(to, fitted_rows(), *figures, changed);
  return true;
}

double RobustFit::cost_at(const Vector& at, double scale) const {
  const Vector to = linear_.within_range(at);
  return cost_of_changed(to, scale, [&](std::size_t row) { return linear_.changes_at(row, to); });
}

double RobustFit::cost_of_changed(const Vector& at, double scale,
                                  const std::function<bool(std::size_t)>& changes) const {
  std::vector<std::size_t> rows = counted_rows();
  std::erase_if(rows, [&](std::size_t row) { return !changes(row); });
  const std::vector<double> simulated = linear_.figures_at(at, rows);
  return too_many_fail(rows, simulated) ? std::numeric_limits<double>::infinity() : cost_of(simulated, at, scale);
}

void RobustFit::scan_caches() {
  for (std::size_t p = 0; p < parameters().size(); ++p) {
    if (parameters()[p].group == ParameterGroup::caches && parameters()[p].integer) scan(p);
  }
}

void RobustFit::scan(std::size_t p) {
  const double scale_now = scale(), now = cost(scale_now);
  Vector best = coordinates();
  double least = now - kScanGain;
  const auto cost_with = [&](double x) {
    Vector at = coordinates();
    at(p) = x;
    at = linear_.within_range(at);
    const double there = cost_of_changed(at, scale_now, [&](std::size_t row) { return linear_.may_change(row, p); });
    if (there < least) std::tie(best, least) = std::pair(at, there);
    return there;
  };
  for (const double step : {-kScanStep, kScanStep}) {
    double there = now;
    for (int i = 1; i <= kScanSteps && there < now + kScanGain; ++i) there = cost_with(coordinates()(p) + i * step);
  }
  if (best == coordinates()) return;
  const double middle = best(p);
  for (const double side : {-kScanStep / 2, kScanStep / 2}) cost_with(middle + side);
  move_to(best);
}

bool RobustFit::improve(int steps, Until until) {
  const std::vector<std::size_t> fitted = fitted_rows();
  linear_.differentiate_new(fitted);
  double damping = kFirstDamping;
  for (int i = 0; i < steps; ++i) {
    if (try_step(damping)) continue;
    const LinearRows::Rows stale = linear_.stale(fitted);
    if (stale.empty() || until == Until::little_gained) return false;
    linear_.differentiate(stale, [](std::size_t) { return true; });
    damping = kFirstDamping;
  }
  return true;
}

}  // namespace verbscope
