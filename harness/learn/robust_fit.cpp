#include "harness/learn/robust_fit.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "common/error.hpp"

namespace verbscope {
namespace {

constexpr double kDerivativeStep = 0.12, kShortestDerivative = 0.04;  // of a coordinate
// A smaller change of the logarithm of a figure is rounding, or noise of the simulation.
constexpr double kLeastChange = 0.002, kNoiseFactor = 3;
constexpr std::array<std::uint64_t, 2> kOtherSeeds{2, 3};
constexpr double kFailedNoise = 0.5;  // of a row whose simulation fails with another seed
constexpr double kLongestStep = 0.7;  // of a coordinate: a factor of two
// Both losses have 95 % of the efficiency of squares for normal errors with these constants (Huber, 1964; Rey, 1983).
constexpr double kHuber = 1.345, kCauchy = 2.385;
constexpr double kLeastFreedom = 0.1;  // of a residual: 1 - leverage, at least
constexpr double kNormalMad = 1.4826;  // standard deviation of a normal variable / its median absolute deviation
// Largest error of the linear prediction of a row's change: this (after a step that was no use, or a good one), and
// this share of the change.
constexpr double kPoorLine = 0.03, kVeryPoorLine = 0.1, kPoorShare = 0.4;
constexpr double kFirstDamping = 0.01, kDampingFactor = 3;
constexpr int kAttempts = 5;
constexpr double kShortStep = 0.05;    // of each coordinate: what such a step does not foretell is noise
constexpr double kScanGain = 10;       // of the cost, at least, to change the size of a cache
constexpr double kEnoughGain = 0.005;  // of the cost: less ends the search
constexpr double kFailedShare = 0.1;   // of the runs of a step: more are a fault of its values

// Cholesky's decomposition of a symmetric positive definite matrix.
Eigen::LLT<Matrix> decomposed(const Matrix& matrix) {
  Eigen::LLT<Matrix> out(matrix);
  if (out.info() != Eigen::Success) fail("the matrix of the fit is not positive definite");
  return out;
}

double middle(std::vector<double> values) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace

RobustFit::RobustFit(std::vector<FitParameter> parameters, LogFigures figures, const RobustFitOptions& options)
    : parameters_(std::move(parameters)),
      figures_(std::move(figures)),
      options_(options),
      start_(static_cast<Eigen::Index>(parameters_.size())) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) start_(i) = coordinate(parameters_[i], parameters_[i].start);
  x_ = start_;
}

std::size_t RobustFit::add_row(RowUse use, double log_measured, std::uint32_t properties) {
  rows_.push_back({.use = use, .measured = log_measured, .properties = properties});
  return rows_.size() - 1;
}

void RobustFit::set_measured(std::size_t row, RowUse use, double log_measured, bool confirmed) {
  rows_[row].use = use;
  rows_[row].confirmed = confirmed;
  rows_[row].measured = log_measured;
}

std::vector<double> RobustFit::values_at(const Vector& x) const {
  std::vector<double> values;
  for (std::size_t i = 0; i < parameters_.size(); ++i) values.push_back(value_at_coordinate(parameters_[i], x(i)));
  return values;
}

Vector RobustFit::within_range(Vector x) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    x(i) = coordinate(parameters_[i], value_at_coordinate(parameters_[i], x(i)));
  return x;
}

std::vector<std::size_t> RobustFit::fitted_rows() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].use == RowUse::fitted) out.push_back(i);
  }
  return out;
}

void RobustFit::simulate(const std::vector<std::size_t>& rows) {
  std::vector<FitTrial> trials;
  for (const std::size_t i : rows) {
    if (!rows_[i].has_figure) trials.push_back({.values = values(), .row = i});
  }
  const std::vector<double> figures = figures_(trials);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    rows_[trials[i].row].simulated = figures[i];
    rows_[trials[i].row].has_figure = true;
  }
}

void RobustFit::measure_noise(const std::vector<std::size_t>& rows) {
  std::vector<FitTrial> trials;
  for (const std::size_t i : rows) {
    const std::size_t seeds = rows_[i].has_derivatives ? 1 : kOtherSeeds.size();  // fewer once it is known
    for (std::size_t s = 0; s < seeds; ++s) trials.push_back({.values = values(), .row = i, .seed = kOtherSeeds.at(s)});
  }
  const std::vector<double> figures = figures_(trials);
  for (const std::size_t i : rows) rows_[i].noise = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    Row& row = rows_[trials[i].row];
    const double difference = std::abs(figures[i] - row.simulated);
    row.noise = std::max(row.noise, std::isfinite(difference) ? difference : kFailedNoise);
  }
}

Vector RobustFit::slower() const {
  Vector out(x_.size());
  for (std::size_t p = 0; p < parameters_.size(); ++p) out(p) = slows_when_larger(parameters_[p]) ? 1 : -1;
  return out;
}

std::optional<double> RobustFit::neighbour(std::size_t p, double towards) const {
  const FitParameter& parameter = parameters_[p];
  const double now = rounded_value(parameter, value_at_coordinate(parameter, x_(p))), x = coordinate(parameter, now);
  const double size = std::clamp(std::abs(towards), kShortestDerivative, kDerivativeStep);
  const double first = std::copysign(size, towards);
  for (const double step : {first, -first}) {
    double other = std::exp(x + step) - parameter.offset;
    if (parameter.integer)
      other = step > 0 ? std::max(std::round(other), now + 1) : std::min(std::round(other), now - 1);
    if (other >= parameter.low && other <= parameter.high) return coordinate(parameter, other) - x;
  }
  return std::nullopt;
}

std::vector<bool> RobustFit::any_changes(const std::vector<CellSet>& sets, const Vector& towards) {
  std::vector<FitTrial> trials;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i].parameters.empty()) continue;
    Vector at = x_;
    for (const std::size_t p : sets[i].parameters) at(p) += neighbour(p, towards(p)).value_or(0);
    trials.push_back({.values = values_at(at), .row = sets[i].row});
    of.push_back(i);
  }
  const std::vector<double> figures = figures_(trials);
  std::vector<bool> out(sets.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const Row& row = rows_[trials[i].row];
    const bool nothing = std::abs(figures[i] - row.simulated) < std::max(kLeastChange, kNoiseFactor * row.noise);
    out[of[i]] = !nothing;
  }
  return out;
}

std::vector<RobustFit::Cell> RobustFit::active(const std::vector<std::size_t>& rows, const Wanted& wanted,
                                               const Vector& towards) {
  const Vector slow = slower();
  const auto side_of = [&](std::size_t p) { return neighbour(p, towards(p)).value_or(0) * slow(p) > 0 ? 1U : 0U; };
  std::vector<Cell> out;
  std::vector<CellSet> quiet;  // by row and side: parameters without a known derivative
  for (const std::size_t r : rows) {
    const Row& row = rows_[r];
    std::array<CellSet, 2> sides{CellSet{.row = r, .parameters = {}}, CellSet{.row = r, .parameters = {}}};
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (!wanted(p) || !may_change(row, p)) continue;
      if (row.has_derivatives && row.derivatives(p) != 0)
        out.push_back({.row = r, .parameter = p});
      else
        sides[side_of(p)].parameters.push_back(p);
    }
    quiet.insert(quiet.end(), sides.begin(), sides.end());
  }
  const std::vector<bool> changed = any_changes(quiet, towards);
  std::vector<CellSet> parts;  // by row, side and group
  for (std::size_t i = 0; i < quiet.size(); ++i) {
    if (!changed[i]) continue;
    std::array<CellSet, kParameterGroups> groups;
    for (const std::size_t p : quiet[i].parameters) {
      CellSet& group = groups[static_cast<std::size_t>(parameters_[p].group)];
      group.row = quiet[i].row;
      group.parameters.push_back(p);
    }
    parts.insert(parts.end(), groups.begin(), groups.end());
  }
  const std::vector<bool> part_changed = any_changes(parts, towards);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!part_changed[i]) continue;
    for (const std::size_t p : parts[i].parameters) out.push_back({.row = parts[i].row, .parameter = p});
  }
  return out;
}

std::vector<double> RobustFit::slopes(const std::vector<Cell>& cells, const Vector& towards) {
  std::vector<FitTrial> trials;
  std::vector<double> steps;
  for (const Cell& cell : cells) {
    Vector at = x_;
    steps.push_back(neighbour(cell.parameter, towards(cell.parameter)).value_or(0));
    at(cell.parameter) += steps.back();
    trials.push_back({.values = values_at(at), .row = cell.row});
  }
  std::vector<double> out = figures_(trials);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Row& row = rows_[cells[i].row];
    const double change = out[i] - row.simulated;
    const bool something = std::abs(change) >= std::max(kLeastChange, kNoiseFactor * row.noise);
    out[i] = something && steps[i] != 0 ? change / steps[i] : 0;
  }
  return out;
}

void RobustFit::differentiate(const std::vector<std::size_t>& rows, const Wanted& wanted) {
  differentiate(rows, wanted, kDerivativeStep * slower());
}

void RobustFit::differentiate(const std::vector<std::size_t>& rows, const Wanted& wanted, const Vector& towards) {
  simulate(rows);
  measure_noise(rows);
  const std::vector<Cell> cells = active(rows, wanted, towards);
  for (const std::size_t r : rows) {
    Row& row = rows_[r];
    if (row.derivatives.size() == 0) row.derivatives = Vector::Zero(x_.size());
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (wanted(p)) row.derivatives(p) = 0;
    }
  }
  const std::vector<double> found = slopes(cells, towards);
  for (std::size_t i = 0; i < cells.size(); ++i) rows_[cells[i].row].derivatives(cells[i].parameter) = found[i];
}

void RobustFit::refresh() {
  const std::vector<std::size_t> rows = fitted_rows();
  const Wanted all = [](std::size_t) { return true; };
  const auto derivatives = [&](double direction) {
    differentiate(rows, all, direction * kDerivativeStep * slower());
    std::vector<Vector> out;
    for (const std::size_t i : rows) out.push_back(rows_[i].derivatives);
    return out;
  };
  const std::vector<Vector> slower_side = derivatives(1), faster_side = derivatives(-1);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Row& row = rows_[rows[r]];
    row.has_derivatives = true;
    row.moved_by.assign(parameters_.size(), false);
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      const double one = slower_side[r](p), other = faster_side[r](p);
      row.moved_by[p] = one != 0 || other != 0;
      row.derivatives(p) = one * other > 0 ? std::copysign(std::min(std::abs(one), std::abs(other)), one) : 0;
    }
  }
}

bool RobustFit::counts(const Row& row) const {
  return row.use == RowUse::fitted && row.has_derivatives && std::isfinite(row.simulated);
}

double RobustFit::scale() const {
  if (options_.error > 0) return options_.error;
  std::vector<double> sizes;
  for (const Row& row : rows_) {
    if (counts(row)) sizes.push_back(std::abs(row.measured - row.simulated));
  }
  if (sizes.empty()) return options_.least_error;
  const double plain = std::max(options_.least_error, kNormalMad * middle(sizes));
  const Matrix covariant = covariance(plain);
  std::size_t i = 0;
  for (const Row& row : rows_) {
    if (!counts(row)) continue;
    const double leverage = weight(row, plain) * row.derivatives.dot(covariant * row.derivatives);
    sizes[i++] /= std::sqrt(std::max(kLeastFreedom, 1 - leverage));
  }
  return std::max(options_.least_error, kNormalMad * middle(std::move(sizes)));
}

double RobustFit::variance(const Row& row, double scale) const {
  return scale * scale + row.noise * row.noise;
}

Loss RobustFit::loss_of(const Row& row) const {
  return row.confirmed && options_.loss == Loss::cauchy ? Loss::huber : options_.loss;
}

double RobustFit::loss_of(const Row& row, double residual, double variance) const {
  const double size = std::abs(residual) / std::sqrt(variance);
  const Loss loss = loss_of(row);
  if (loss == Loss::cauchy) return kCauchy * kCauchy * std::log1p(size * size / (kCauchy * kCauchy));
  return loss == Loss::squares || size < kHuber ? size * size : 2 * kHuber * size - kHuber * kHuber;
}

double RobustFit::weight(const Row& row, double scale) const {
  const double v = variance(row, scale), size = std::abs(row.measured - row.simulated) / std::sqrt(v);
  const Loss loss = loss_of(row);
  if (loss == Loss::cauchy) return 1 / (v * (1 + size * size / (kCauchy * kCauchy)));
  return loss == Loss::squares ? 1 / v : std::min(1.0, kHuber / size) / v;
}

double RobustFit::cost(double scale) const {
  std::vector<double> simulated;
  for (const Row& row : rows_) simulated.push_back(row.simulated);
  return cost_of(simulated, x_, scale);
}

double RobustFit::cost_of(const std::vector<double>& simulated, const Vector& x, double scale) const {
  double sum = options_.known_within > 0 ? ((x - start_) / options_.known_within).squaredNorm() : 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (!counts(row)) continue;
    const double figure = std::isfinite(simulated[i]) ? simulated[i] : row.simulated;  // a failure says nothing
    sum += loss_of(row, row.measured - figure, variance(row, scale));
  }
  return sum;
}

std::optional<std::vector<double>> RobustFit::figures_at(const Vector& x) {
  std::vector<FitTrial> trials;
  const std::vector<double> values = values_at(x);
  for (const std::size_t i : fitted_rows()) trials.push_back({.values = values, .row = i});
  const std::vector<double> figures = figures_(trials);
  std::vector<double> out(rows_.size());
  std::size_t failed = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    out[trials[i].row] = figures[i];
    if (!std::isfinite(figures[i]) && counts(rows_[trials[i].row])) ++failed;
  }
  const bool too_many = static_cast<double>(failed) > kFailedShare * static_cast<double>(trials.size());
  return too_many ? std::nullopt : std::optional(std::move(out));
}

Matrix RobustFit::information(double scale) const {
  Matrix out = Matrix::Zero(x_.size(), x_.size());
  for (const Row& row : rows_) {
    if (counts(row)) out += weight(row, scale) * row.derivatives * row.derivatives.transpose();
  }
  if (options_.known_within > 0) out.diagonal().array() += 1 / (options_.known_within * options_.known_within);
  return out;
}

Matrix RobustFit::covariance() const {
  return covariance(scale());
}

Matrix RobustFit::covariance(double scale) const {
  return decomposed(information(scale)).solve(Matrix::Identity(x_.size(), x_.size()));
}

Vector RobustFit::step(double damping, double scale) const {
  Matrix matrix = information(scale);
  matrix.diagonal() = matrix.diagonal().array() * (1 + damping) + damping;
  Vector pull = Vector::Zero(x_.size());
  for (const Row& row : rows_) {
    if (counts(row)) pull += weight(row, scale) * (row.measured - row.simulated) * row.derivatives;
  }
  if (options_.known_within > 0) pull -= (x_ - start_) / (options_.known_within * options_.known_within);
  return decomposed(matrix).solve(pull);
}

std::vector<std::size_t> RobustFit::poor_rows(const Vector& moved, const std::vector<double>& simulated,
                                              double line) const {
  const double spread = scale();
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.use != RowUse::fitted || !std::isfinite(simulated[i])) continue;
    const double change = simulated[i] - row.simulated, missed = change - row.derivatives.dot(moved);
    // Far from the measured figures a rough slope is enough. Also poor: a row whose run failed before.
    const double allowed = std::max({line, kNoiseFactor * row.noise, spread / 2}) + kPoorShare * std::abs(change);
    if (!(std::abs(missed) < allowed)) out.push_back(i);
  }
  return out;
}

// Broyden's update (Mathematics of Computation 19, 1965), of the derivatives that are not 0: afterwards they foretell
// the change of this step.
void RobustFit::learn_slope(Row& row, const Vector& moved, double change) const {
  const Vector along = (row.derivatives.array() != 0).select(moved, 0);
  const double length = along.squaredNorm();
  if (length > 0) row.derivatives += (change - row.derivatives.dot(moved)) / length * along;
}

void RobustFit::accept(const Vector& to, const std::vector<double>& simulated) {
  const Vector moved = to - x_;
  const std::vector<std::size_t> poor = poor_rows(moved, simulated, kVeryPoorLine);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    row.has_figure = row.use == RowUse::fitted;
    if (!row.has_figure) continue;
    const double change = simulated[i] - row.simulated;
    row.simulated = simulated[i];  // a row whose run failed no longer counts
    if (std::isfinite(change) && !std::ranges::binary_search(poor, i)) learn_slope(row, moved, change);
  }
  x_ = to;
  differentiate(
      poor, [](std::size_t) { return true; }, moved);
}

// What no linear step can foretell is noise to the fit, once the step is small.
void RobustFit::learn_noise(const Vector& moved, const std::vector<double>& simulated) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (!counts(row)) continue;
    const double missed = std::abs(simulated[i] - row.simulated - row.derivatives.dot(moved));
    if (std::isfinite(missed)) row.noise = std::max(row.noise, missed / 2);
  }
}

// Returns true if the step gained enough.
bool RobustFit::try_step(double& damping) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double scale_now = scale(), before = cost(scale_now);
    const Vector to = within_range(x_ + step(damping, scale_now).cwiseMin(kLongestStep).cwiseMax(-kLongestStep));
    const Vector moved = to - x_;
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
    const std::vector<std::size_t> poor = poor_rows(moved, *simulated, kPoorLine);
    if (moved.cwiseAbs().maxCoeff() < kShortStep) {
      learn_noise(moved, *simulated);
    } else {
      differentiate(
          poor, [](std::size_t) { return true; }, moved);
    }
    if (poor.empty()) damping *= kDampingFactor;
  }
  return false;
}

bool RobustFit::move_to(const Vector& at) {
  const Vector to = within_range(at);
  const std::optional<std::vector<double>> simulated = figures_at(to);
  if (!simulated) return false;
  accept(to, *simulated);
  return true;
}

double RobustFit::cost_at(const Vector& at, double scale) {
  const Vector to = within_range(at);
  return cost_of_changed(to, scale, [&](const Row& row) {
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (row.moved_by[p] && to(p) != x_(p)) return true;
    }
    return false;
  });
}

double RobustFit::cost_of_changed(const Vector& at, double scale, const std::function<bool(const Row&)>& changes) {
  std::vector<double> simulated;
  std::vector<FitTrial> trials;
  const std::vector<double> values = values_at(at);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    simulated.push_back(rows_[i].simulated);
    if (counts(rows_[i]) && changes(rows_[i])) trials.push_back({.values = values, .row = i});
  }
  const std::vector<double> figures = figures_(trials);
  std::size_t failed = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    simulated[trials[i].row] = figures[i];
    if (!std::isfinite(figures[i])) ++failed;
  }
  const bool too_many = static_cast<double>(failed) > kFailedShare * static_cast<double>(rows_.size());
  return too_many ? std::numeric_limits<double>::infinity() : cost_of(simulated, at, scale);
}

void RobustFit::scan_caches() {
  const double scale_now = scale();
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (parameters_[p].group != ParameterGroup::caches || !parameters_[p].integer) continue;
    Vector best = x_;
    double least = cost(scale_now) - kScanGain;
    for (const int doublings : {-3, -2, -1, 1, 2, 3}) {
      Vector at = x_;
      at(p) += doublings * std::log(2.0);
      at = within_range(at);
      const double there = cost_of_changed(at, scale_now, [&](const Row& row) { return may_change(row, p); });
      if (there < least) std::tie(best, least) = std::pair(at, there);
    }
    if (best != x_) move_to(best);
  }
}

bool RobustFit::improve(int steps, Until until) {
  const Wanted all = [](std::size_t) { return true; };
  const std::vector<std::size_t> fitted = fitted_rows();
  std::vector<std::size_t> fresh;
  for (const std::size_t i : fitted) {
    if (!rows_[i].has_derivatives) fresh.push_back(i);
  }
  differentiate(fresh, all);
  for (const std::size_t i : fresh) rows_[i].has_derivatives = true;
  bool all_fresh = fresh.size() == fitted.size();
  double damping = kFirstDamping;
  for (int i = 0; i < steps; ++i) {
    if (try_step(damping)) {
      all_fresh = false;
      continue;
    }
    if (all_fresh || until == Until::little_gained) return false;
    // Derivatives that no step has proved wrong may still be old.
    differentiate(fitted, all);
    all_fresh = true;
    damping = kFirstDamping;
  }
  return true;
}

}  // namespace verbscope
