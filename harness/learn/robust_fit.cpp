#include "harness/learn/robust_fit.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/error.hpp"

namespace verbscope {
namespace {

constexpr double kDerivativeStep = 0.12;  // of a coordinate
// A smaller change of the logarithm of a figure is rounding, or noise of the simulation.
constexpr double kLeastChange = 0.002, kNoiseFactor = 3;
constexpr std::array<std::uint64_t, 2> kOtherSeeds{2, 3};
constexpr double kFailedNoise = 0.5;  // of a row whose simulation fails with another seed
constexpr double kLongestStep = 0.7;  // of a coordinate: a factor of two
// Both losses have 95 % of the efficiency of squares for normal errors with these constants (Huber, 1964; Rey, 1983).
constexpr double kHuber = 1.345, kCauchy = 2.385;
constexpr double kLeastFreedom = 0.1;  // of a residual: 1 - leverage, at least
constexpr double kNormalMad = 1.4826;  // standard deviation of a normal variable / its median absolute deviation
// Largest error of the linear prediction of a row's change: this, and this share of the change.
constexpr double kPoorLine = 0.03, kPoorShare = 0.4;
constexpr double kFirstDamping = 0.01, kDampingFactor = 3;
constexpr int kAttempts = 4;
constexpr double kEnoughGain = 0.005;  // of the cost: less ends the search
constexpr double kFailedShare = 0.1;   // of the runs of a step: more are a fault of its values

// The value at which a derivative is simulated: towards a slower or a faster machine, or the other way if that leaves
// the range. Whole numbers differ by at least one. Nothing if there is no other value.
std::optional<double> neighbour(const FitParameter& parameter, double value, Side side) {
  const double now = rounded_value(parameter, value), x = coordinate(parameter, now);
  const double first = slows_when_larger(parameter) == (side == Side::slower) ? kDerivativeStep : -kDerivativeStep;
  for (const double step : {first, -first}) {
    double other = std::exp(x + step) - parameter.offset;
    if (parameter.integer)
      other = step > 0 ? std::max(std::round(other), now + 1) : std::min(std::round(other), now - 1);
    if (other >= parameter.low && other <= parameter.high) return other;
  }
  return std::nullopt;
}

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

void RobustFit::set_measured(std::size_t row, RowUse use, double log_measured) {
  rows_[row].use = use;
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
    for (const std::uint64_t seed : kOtherSeeds) trials.push_back({.values = values(), .row = i, .seed = seed});
  }
  const std::vector<double> figures = figures_(trials);
  for (const std::size_t i : rows) rows_[i].noise = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    Row& row = rows_[trials[i].row];
    const double difference = std::abs(figures[i] - row.simulated);
    row.noise = std::max(row.noise, std::isfinite(difference) ? difference : kFailedNoise);
  }
}

std::vector<std::vector<bool>> RobustFit::active_groups(const std::vector<std::size_t>& rows,
                                                        const std::function<bool(std::size_t)>& wanted) {
  std::vector<FitTrial> trials;
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t group = 0; group < kParameterGroups; ++group) {
      std::vector<double> moved = values();
      bool any = false;
      for (std::size_t p = 0; p < parameters_.size(); ++p) {
        if (static_cast<std::size_t>(parameters_[p].group) != group || !wanted(p) || !may_change(rows_[rows[r]], p))
          continue;
        const std::optional<double> other = neighbour(parameters_[p], moved[p], Side::slower);
        if (!other) continue;
        moved[p] = *other;
        any = true;
      }
      if (!any) continue;
      places.emplace_back(r, group);
      trials.push_back({.values = std::move(moved), .row = rows[r]});
    }
  }
  const std::vector<double> figures = figures_(trials);
  std::vector<std::vector<bool>> out(rows.size(), std::vector<bool>(kParameterGroups));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Row& row = rows_[trials[i].row];
    const bool nothing = std::abs(figures[i] - row.simulated) < std::max(kLeastChange, kNoiseFactor * row.noise);
    out[places[i].first][places[i].second] = !nothing;
  }
  return out;
}

std::vector<double> RobustFit::slopes(const std::vector<Cell>& cells, Side side) {
  std::vector<FitTrial> trials;
  std::vector<double> steps;
  for (const Cell& cell : cells) {
    const FitParameter& parameter = parameters_[cell.parameter];
    std::vector<double> values = values_at(x_);
    const double now = rounded_value(parameter, values[cell.parameter]);
    values[cell.parameter] = neighbour(parameter, now, side).value_or(now);
    steps.push_back(coordinate(parameter, values[cell.parameter]) - coordinate(parameter, now));
    trials.push_back({.values = std::move(values), .row = cell.row});
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

void RobustFit::differentiate(const std::vector<std::size_t>& rows, const std::function<bool(std::size_t)>& wanted) {
  simulate(rows);
  measure_noise(rows);
  const std::vector<std::vector<bool>> active = active_groups(rows, wanted);
  std::vector<Cell> cells;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Row& row = rows_[rows[r]];
    if (row.derivatives.size() == 0) row.derivatives = Vector::Zero(x_.size());
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (!wanted(p)) continue;
      row.derivatives(p) = 0;
      const bool may = may_change(row, p) && active[r][static_cast<std::size_t>(parameters_[p].group)];
      if (may) cells.push_back({.row = rows[r], .parameter = p});
    }
  }
  const std::vector<double> found = slopes(cells, Side::slower);
  for (std::size_t i = 0; i < cells.size(); ++i) rows_[cells[i].row].derivatives(cells[i].parameter) = found[i];
}

void RobustFit::refresh() {
  const std::vector<std::size_t> rows = fitted_rows();
  differentiate(rows, [](std::size_t) { return true; });
  std::vector<Cell> cells;
  for (const std::size_t i : rows) {
    rows_[i].has_derivatives = true;
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (rows_[i].derivatives(p) != 0) cells.push_back({.row = i, .parameter = p});
    }
  }
  const std::vector<double> faster = slopes(cells, Side::faster);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    double& slower = rows_[cells[i].row].derivatives(cells[i].parameter);
    const double least = std::min(std::abs(slower), std::abs(faster[i]));
    slower = slower * faster[i] > 0 ? std::copysign(least, slower) : 0;
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

double RobustFit::loss_of(double residual, double variance) const {
  const double size = std::abs(residual) / std::sqrt(variance);
  if (options_.loss == Loss::cauchy) return kCauchy * kCauchy * std::log1p(size * size / (kCauchy * kCauchy));
  return options_.loss == Loss::squares || size < kHuber ? size * size : 2 * kHuber * size - kHuber * kHuber;
}

double RobustFit::weight(const Row& row, double scale) const {
  const double v = variance(row, scale), size = std::abs(row.measured - row.simulated) / std::sqrt(v);
  if (options_.loss == Loss::cauchy) return 1 / (v * (1 + size * size / (kCauchy * kCauchy)));
  return options_.loss == Loss::squares ? 1 / v : std::min(1.0, kHuber / size) / v;
}

double RobustFit::cost(double scale) const {
  std::vector<double> simulated;
  for (const Row& row : rows_) simulated.push_back(row.simulated);
  return cost_of(simulated, x_, scale);
}

double RobustFit::cost_of(const std::vector<double>& simulated, const Vector& x, double scale) const {
  double sum = options_.known_within > 0 ? ((x - start_) / options_.known_within).squaredNorm() : 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (counts(rows_[i])) sum += loss_of(rows_[i].measured - simulated[i], variance(rows_[i], scale));
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
    const Row& row = rows_[trials[i].row];
    const bool fails = !std::isfinite(figures[i]) && counts(row);
    if (fails) ++failed;
    out[trials[i].row] = fails ? row.simulated + row.derivatives.dot(x - x_) : figures[i];
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
  if (held_) {
    matrix.row(*held_).setZero();
    matrix.col(*held_).setZero();
    matrix(*held_, *held_) = 1;
    pull(*held_) = 0;
  }
  return decomposed(matrix).solve(pull);
}

void RobustFit::accept(const Vector& to, const std::vector<double>& simulated) {
  const double spread = scale();
  std::vector<std::size_t> poor;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    row.has_figure = row.use == RowUse::fitted;
    if (!row.has_figure) continue;
    const double change = simulated[i] - row.simulated;
    row.simulated = simulated[i];
    const double missed = change - row.derivatives.dot(to - x_);
    // Far from the measured figures a rough slope is enough. Also true if the run failed before or now.
    const double allowed = std::max({kPoorLine, kNoiseFactor * row.noise, spread / 2}) + kPoorShare * std::abs(change);
    if (!(std::abs(missed) < allowed)) poor.push_back(i);
  }
  x_ = to;
  differentiate(poor, [](std::size_t) { return true; });
}

// What no linear step can foretell is noise to the fit, once the step is small.
void RobustFit::learn_noise(const Vector& moved, const std::vector<double>& simulated) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (!counts(row)) continue;
    const double missed = std::abs(simulated[i] - row.simulated - row.derivatives.dot(moved));
    row.noise = std::max(row.noise, missed / 2);
  }
}

// Returns true if a further step may gain more.
bool RobustFit::try_step(double& damping) {
  const double scale_now = scale(), before = cost(scale_now);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const Vector to = within_range(x_ + step(damping, scale_now).cwiseMin(kLongestStep).cwiseMax(-kLongestStep));
    damping = std::max(damping, kFirstDamping) * kDampingFactor * kDampingFactor;
    const std::optional<std::vector<double>> simulated = figures_at(to);
    if (!simulated) continue;
    const double after = cost_of(*simulated, to, scale_now);
    if (after < before) {
      damping /= kDampingFactor * kDampingFactor * kDampingFactor;
      accept(to, *simulated);
      return before - after > kEnoughGain * before;
    }
    if (attempt > 0) learn_noise(to - x_, *simulated);
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

bool RobustFit::improve(int steps) {
  std::vector<std::size_t> fresh;
  for (const std::size_t i : fitted_rows()) {
    if (!rows_[i].has_derivatives) fresh.push_back(i);
  }
  differentiate(fresh, [](std::size_t) { return true; });
  for (const std::size_t i : fresh) rows_[i].has_derivatives = true;
  double damping = kFirstDamping;
  for (int i = 0; i < steps; ++i) {
    if (!try_step(damping)) return false;
  }
  return true;
}

}  // namespace verbscope
