#include "harness/learn/linear_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

namespace verbscope {
namespace {

constexpr double kDerivativeStep = 0.12, kShortestDerivative = 0.04;  // of a coordinate
// A smaller change of the logarithm of a figure is rounding, or noise of the simulation.
constexpr double kLeastChange = 0.002, kNoiseFactor = 3;
// A derivative by which the figure changes less, of the logarithm, is simulated with a longer step instead: rates of a
// few operations at a time move in small jumps, because cores poll at intervals.
constexpr double kWeakChange = 0.012, kWeakFactor = 3.5;
// Derivatives hold up to this distance, of each coordinate, from where they were simulated.
constexpr double kHolds = 0.08;
constexpr std::array<std::uint64_t, 2> kOtherSeeds{2, 3};
constexpr double kFailedNoise = 0.5;  // of a row whose simulation fails with another seed
// A figure that varies more than this between seeds says nothing about the parameters, and neither does a run that
// fails. Both come from packet loss, and take long to simulate.
constexpr double kChaos = 0.2;
constexpr double kPoorShare = 0.4;  // of a change that the derivatives may miss

bool all(std::size_t) {
  return true;
}

}  // namespace

LinearRows::LinearRows(std::vector<FitParameter> parameters, LogFigures figures)
    : parameters_(std::move(parameters)),
      figures_(std::move(figures)),
      x_(static_cast<Eigen::Index>(parameters_.size())) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) x_(i) = coordinate(parameters_[i], parameters_[i].start);
}

std::size_t LinearRows::add(std::uint32_t properties) {
  rows_.push_back({.properties = properties});
  return rows_.size() - 1;
}

std::vector<double> LinearRows::values_at(const Vector& x) const {
  std::vector<double> values;
  for (std::size_t i = 0; i < parameters_.size(); ++i) values.push_back(value_at_coordinate(parameters_[i], x(i)));
  return values;
}

Vector LinearRows::within_range(Vector x) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    x(i) = coordinate(parameters_[i], value_at_coordinate(parameters_[i], x(i)));
  return x;
}

bool LinearRows::changes_at(std::size_t row, const Vector& x) const {
  if (rows_[row].moved_by.empty()) return true;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    if (rows_[row].moved_by[p] && x(p) != x_(p)) return true;
  }
  return false;
}

std::vector<double> LinearRows::corrected_figures(const std::vector<FitTrial>& trials) const {
  std::vector<double> out = figures_(trials);
  for (std::size_t i = 0; i < trials.size(); ++i) out[i] += rows_[trials[i].row].correction;
  return out;
}

void LinearRows::simulate(const Rows& rows) {
  std::vector<FitTrial> trials;
  for (const std::size_t i : rows) {
    if (!rows_[i].has_figure) trials.push_back({.values = values_at(x_), .row = i});
  }
  const std::vector<double> figures = corrected_figures(trials);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    rows_[trials[i].row].simulated = figures[i];
    rows_[trials[i].row].has_figure = true;
  }
}

bool LinearRows::correct(const Rows& rows) {
  simulate(rows);
  std::vector<FitTrial> trials;
  for (const std::size_t i : rows) {
    const Row& row = rows_[i];
    const bool holds = row.corrected_for && std::abs(row.simulated - *row.corrected_for) < kLeastChange;
    if (std::isfinite(row.simulated) && !holds)
      trials.push_back({.values = values_at(x_), .row = i, .interval = SimulatedInterval::usual});
  }
  const std::vector<double> usual = figures_(trials);
  bool changed = false;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    Row& row = rows_[trials[i].row];
    const double change = std::isfinite(usual[i]) ? usual[i] - row.simulated : 0;
    changed = changed || std::abs(change) > kLeastChange;
    row.correction += change;
    row.simulated += change;
    row.corrected_for = row.simulated;
  }
  return changed;
}

std::vector<double> LinearRows::figures_at(const Vector& x, const Rows& rows) const {
  std::vector<double> out;
  for (const Row& row : rows_) out.push_back(row.simulated);
  std::vector<FitTrial> trials;
  const std::vector<double> values = values_at(x);
  for (const std::size_t i : rows) trials.push_back({.values = values, .row = i});
  const std::vector<double> figures = corrected_figures(trials);
  for (std::size_t i = 0; i < rows.size(); ++i) out[rows[i]] = figures[i];
  return out;
}

void LinearRows::measure_noise(const Rows& rows) {
  std::vector<FitTrial> trials;
  for (const std::size_t i : rows) {
    const std::size_t seeds = rows_[i].has_derivatives ? 1 : kOtherSeeds.size();  // fewer once it is known
    for (std::size_t s = 0; s < seeds; ++s)
      trials.push_back({.values = values_at(x_), .row = i, .seed = kOtherSeeds.at(s)});
  }
  const std::vector<double> figures = corrected_figures(trials);
  for (const std::size_t i : rows) rows_[i].noise = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    Row& row = rows_[trials[i].row];
    const double difference = std::abs(figures[i] - row.simulated);
    row.noise = std::max(row.noise, std::isfinite(difference) ? difference : kFailedNoise);
  }
}

Vector LinearRows::slower() const {
  Vector out(x_.size());
  for (std::size_t p = 0; p < parameters_.size(); ++p) out(p) = slows_when_larger(parameters_[p]) ? 1 : -1;
  return out;
}

std::optional<double> LinearRows::neighbour(std::size_t p, double towards, double factor) const {
  const FitParameter& parameter = parameters_[p];
  const double now = rounded_value(parameter, value_at_coordinate(parameter, x_(p))), x = coordinate(parameter, now);
  const double size = std::clamp(std::abs(towards), factor * kShortestDerivative, factor * kDerivativeStep);
  const double first = std::copysign(size, towards);
  for (const double step : {first, -first}) {
    double other = unbounded_value_at(parameter, x + step);
    if (parameter.integer)
      other = step > 0 ? std::max(std::round(other), now + 1) : std::min(std::round(other), now - 1);
    if (other >= parameter.low && other <= parameter.high) return coordinate(parameter, other) - x;
  }
  return std::nullopt;
}

bool LinearRows::is_change(const Row& row, double figure) const {
  const bool nothing = std::abs(figure - row.simulated) < std::max(kLeastChange, kNoiseFactor * row.noise);
  return !nothing;  // also if a run failed
}

std::vector<bool> LinearRows::any_changes(const std::vector<CellSet>& sets, const Vector& towards) const {
  std::vector<FitTrial> trials;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (sets[i].parameters.empty()) continue;
    Vector at = x_;
    for (const std::size_t p : sets[i].parameters) at(p) += neighbour(p, towards(p)).value_or(0);
    trials.push_back({.values = values_at(at), .row = sets[i].row});
    of.push_back(i);
  }
  const std::vector<double> figures = corrected_figures(trials);
  std::vector<bool> out(sets.size());
  for (std::size_t i = 0; i < trials.size(); ++i) {
    out[of[i]] = is_change(rows_[trials[i].row], figures[i]);
  }
  return out;
}

std::vector<LinearRows::Cell> LinearRows::active(const Rows& rows, const Wanted& wanted, const Vector& towards) const {
  const Vector slow = slower();
  const auto side_of = [&](std::size_t p) { return neighbour(p, towards(p)).value_or(0) * slow(p) > 0 ? 1U : 0U; };
  std::vector<Cell> out;
  std::vector<CellSet> quiet;  // by row and side: parameters without a known derivative
  for (const std::size_t r : rows) {
    const Row& row = rows_[r];
    std::array<CellSet, 2> sides{CellSet{.row = r, .parameters = {}}, CellSet{.row = r, .parameters = {}}};
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (!wanted(p) || !may_change(r, p)) continue;
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

std::vector<double> LinearRows::slopes_by(double factor, const std::vector<Cell>& cells, const Vector& towards) const {
  std::vector<FitTrial> trials;
  std::vector<double> steps;
  for (const Cell& cell : cells) {
    Vector at = x_;
    steps.push_back(neighbour(cell.parameter, factor * towards(cell.parameter), factor).value_or(0));
    at(cell.parameter) += steps.back();
    trials.push_back({.values = values_at(at), .row = cell.row});
  }
  std::vector<double> out = corrected_figures(trials);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Row& row = rows_[cells[i].row];
    const double change = out[i] - row.simulated;
    const bool something = std::isfinite(change) && is_change(row, out[i]);
    out[i] = something && steps[i] != 0 ? change / steps[i] : 0;
  }
  return out;
}

bool LinearRows::is_weak(const Row& row, double slope) const {
  return std::abs(slope) * kDerivativeStep < std::max(kWeakChange, 2 * kNoiseFactor * row.noise);
}

std::vector<double> LinearRows::slopes(const std::vector<Cell>& cells, const Vector& towards) const {
  std::vector<double> out(cells.size());
  const auto simulate = [&](double factor, const std::vector<std::size_t>& which) {
    std::vector<Cell> some;
    for (const std::size_t i : which) some.push_back(cells[i]);
    const std::vector<double> found = slopes_by(factor, some, towards);
    for (std::size_t i = 0; i < which.size(); ++i) out[which[i]] = found[i];
  };
  const auto row_of = [&](std::size_t i) -> const Row& { return rows_[cells[i].row]; };
  std::vector<std::size_t> usual, weak;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double known = row_of(i).has_derivatives ? row_of(i).derivatives(cells[i].parameter) : 0;
    (known != 0 && is_weak(row_of(i), known) ? weak : usual).push_back(i);
  }
  simulate(1, usual);
  std::ranges::copy_if(usual, std::back_inserter(weak), [&](std::size_t i) { return is_weak(row_of(i), out[i]); });
  simulate(kWeakFactor, weak);
  return out;
}

void LinearRows::differentiate(const Rows& rows, const Wanted& wanted) {
  differentiate(rows, wanted, kDerivativeStep * slower());
}

void LinearRows::differentiate(const Rows& rows, const Vector& towards) {
  differentiate(rows, all, towards);
}

void LinearRows::differentiate_new(const Rows& rows) {
  Rows fresh;
  for (const std::size_t i : rows) {
    if (!rows_[i].has_derivatives) fresh.push_back(i);
  }
  differentiate(fresh, all);
  for (const std::size_t i : fresh) rows_[i].has_derivatives = true;
}

void LinearRows::differentiate(const Rows& rows, const Wanted& wanted, const Vector& towards) {
  simulate(rows);
  measure_noise(rows);
  Rows steady = rows;
  std::erase_if(steady,
                [this](std::size_t r) { return !(rows_[r].noise < kChaos && std::isfinite(rows_[r].simulated)); });
  const std::vector<Cell> cells = active(steady, wanted, towards);
  const std::vector<double> found = slopes(cells, towards);
  for (const std::size_t r : rows) {
    Row& row = rows_[r];
    if (row.derivatives.size() == 0) row.derivatives = Vector::Zero(x_.size());
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      if (wanted(p)) row.derivatives(p) = 0;
    }
    row.taken_at = x_;
  }
  for (std::size_t i = 0; i < cells.size(); ++i) rows_[cells[i].row].derivatives(cells[i].parameter) = found[i];
}

bool LinearRows::is_stale(const Row& row) const {
  const Vector moved = (row.derivatives.array() != 0).select(x_ - row.taken_at, 0);
  return moved.cwiseAbs().maxCoeff() > kHolds;
}

LinearRows::Rows LinearRows::stale(const Rows& rows) const {
  Rows out;
  std::ranges::copy_if(rows, std::back_inserter(out), [this](std::size_t i) { return is_stale(rows_[i]); });
  return out;
}

LinearRows::Rows LinearRows::poor(const Rows& rows, const Vector& moved, const std::vector<double>& figures,
                                  double line) const {
  Rows out;
  for (const std::size_t i : rows) {
    const Row& row = rows_[i];
    if (!std::isfinite(figures[i])) continue;
    const double change = figures[i] - row.simulated, missed = change - row.derivatives.dot(moved);
    // Far from the measured figures a rough slope is enough. Also poor: a row whose run failed before.
    const double allowed = std::max(line, kNoiseFactor * row.noise) + kPoorShare * std::abs(change);
    if (!(std::abs(missed) < allowed)) out.push_back(i);
  }
  return out;
}

void LinearRows::place(const Vector& at, const Rows& rows, const std::vector<double>& figures) {
  x_ = at;
  for (Row& row : rows_) row.has_figure = false;
  for (const std::size_t i : rows) {
    rows_[i].simulated = figures[i];
    rows_[i].has_figure = true;
  }
}

void LinearRows::move(const Vector& to, const Rows& rows, const std::vector<double>& figures, const Rows& poor) {
  const Vector moved = to - x_;
  const std::vector<double> before = figures_at(x_, {});
  place(to, rows, figures);
  for (const std::size_t i : rows) {
    Row& row = rows_[i];
    const double change = figures[i] - before[i];
    // What derivatives that hold do not foretell is noise.
    if (!std::isfinite(change) || !is_stale(row) || std::ranges::binary_search(poor, i)) continue;
    // Broyden's update (Mathematics of Computation 19, 1965), of the derivatives that are not 0: afterwards they
    // foretell the change of this step.
    const Vector along = (row.derivatives.array() != 0).select(moved, 0);
    const double length = along.squaredNorm();
    if (length > 0) row.derivatives += (change - row.derivatives.dot(moved)) / length * along;
  }
  differentiate(poor, moved);
}

void LinearRows::move_to_similar(const Vector& to, const Rows& rows, const std::vector<double>& figures,
                                 const Rows& changed) {
  const Vector moved = to - x_;
  place(to, rows, figures);
  for (const std::size_t i : rows) rows_[i].taken_at += moved;
  differentiate(changed, all);
}

void LinearRows::learn_noise(const Rows& rows, const Vector& moved, const std::vector<double>& figures) {
  for (const std::size_t i : rows) {
    Row& row = rows_[i];
    const double missed = std::abs(figures[i] - row.simulated - row.derivatives.dot(moved));
    if (std::isfinite(missed)) row.noise = std::max(row.noise, missed / 2);
  }
}

void LinearRows::refresh(const Rows& rows) {
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
    row.steeper = Vector::Zero(x_.size());
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      const double one = slower_side[r](p), other = faster_side[r](p);
      row.moved_by[p] = one != 0 || other != 0;
      row.steeper(p) = std::abs(one) > std::abs(other) ? one : other;
      row.derivatives(p) = one * other > 0 ? std::copysign(std::min(std::abs(one), std::abs(other)), one) : 0;
    }
  }
}

}  // namespace verbscope
