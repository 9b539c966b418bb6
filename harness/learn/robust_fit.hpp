// Fits parameters to measured figures, whose logarithms it compares with those of simulated runs: Levenberg and
// Marquardt's method (Marquardt, J. SIAM 11, 1963) with a robust loss and simulated derivatives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "harness/learn/linear_rows.hpp"

namespace verbscope {

// What a residual costs. Huber's loss has one minimum, so that rows that disagree with a wrong start still pull;
// Cauchy's ignores outliers, for values that are nearly right.
enum class Loss { squares, huber, cauchy };

struct RobustFitOptions {
  // Standard deviation of the starting values' coordinates: a parameter that the rows do not determine stays at its
  // start (ridge regression: Hoerl and Kennard, Technometrics 12, 1970). Half of the parameters of the shipped mlx5
  // profiles that differ at all differ by less than this.
  double known_within = 0.5;
  double least_error = 0.003;  // standard deviation of an accurate row, of its logarithm
  double error = 0;            // standard deviation of a row; 0: estimated from the residuals
  Loss loss = Loss::huber;
};

// A search ends at a step that gains less than this share of the cost.
inline constexpr double kEnoughGain = 0.005;

// Another whole number (the size of a cache, a count of units) is kept if it gains this much of the cost.
inline constexpr double kScanGain = 10;

// A candidate has no measured figure yet. A row that is held out judges the fit.
enum class RowUse { candidate, fitted, held_out };

class RobustFit {
 public:
  RobustFit(std::vector<FitParameter> parameters, LogFigures figures, const RobustFitOptions& options);

  // Adds a row. Parameters that need other properties do not change its figure. Returns its index.
  std::size_t add_row(RowUse use, double log_measured, std::uint32_t properties);
  // Turns a candidate into a row with a measured figure, or changes the figure of a row. A confirmed figure was
  // measured more than once: no loss ignores it.
  void set_measured(std::size_t row, RowUse use, double log_measured, bool confirmed);
  // Makes a row one of a group whose figures have an unknown common factor: only their ratios count. The factor is the
  // mean of simulated to measured ones over the fitted rows.
  void set_group(std::size_t row, std::size_t group);

  // How improve() goes on after a step that gains little.
  enum class Until { little_gained, little_gained_with_fresh_derivatives };
  // Improves the values by up to `steps` steps, until one gains less than kEnoughGain. Returns false after such a step.
  // Steps do not move held parameters. Fresh derivatives of the rows whose own are stale cost as much as many steps,
  // and find better values.
  bool improve(int steps, Until until = Until::little_gained);
  void hold(std::size_t parameter) { held_[parameter] = true; }
  void release(std::size_t parameter) { held_[parameter] = false; }
  // Tries other sizes of each cache, by factors from 1.4 to 8, and keeps the best. A cache that is much too small or
  // too large has no derivatives.
  void scan_caches();
  Loss loss() const { return options_.loss; }
  void set_loss(Loss loss) { options_.loss = loss; }
  // Moves to these coordinates. Returns false, and moves nothing, if many simulations fail there. Precondition:
  // improve().
  bool move_to(const Vector& at);
  // The same to coordinates at which most figures are about the same: their rows keep their derivatives.
  bool move_to_similar(const Vector& at);
  // What the search minimises, at the present values and with this standard deviation of a row.
  double cost(double scale) const;
  // The same at other coordinates; infinite if many simulations fail there. After refresh(), rows that none of the
  // moved parameters changes are not simulated.
  double cost_at(const Vector& at, double scale) const;
  // Corrects the figures of all measured rows to those of their usual intervals at the present values. Returns true if
  // a correction changed (LinearRows::correct).
  bool correct();
  // Simulates all derivatives of the fitted rows at the present values again, for the covariance (LinearRows::refresh).
  void refresh() { linear_.refresh(fitted_rows()); }

  const std::vector<FitParameter>& parameters() const { return linear_.parameters(); }
  std::vector<double> values() const { return linear_.values_at(coordinates()); }

  std::size_t rows() const { return rows_.size(); }
  RowUse use(std::size_t row) const { return rows_[row].use; }
  double measured(std::size_t row) const { return rows_[row].measured; }
  // The logarithm of the simulated figure; NaN if the run failed. Precondition: simulate() at the present values, for
  // rows that are not fitted.
  double simulated(std::size_t row) const { return linear_[row].simulated; }
  double residual(std::size_t row) const { return measured(row) + factor(row) - simulated(row); }
  // Of the residual's negative, by coordinate. Precondition: they were simulated, as for each fitted row.
  Vector derivatives(std::size_t row) const;
  // Simulates the figures of these rows at the present values, unless they are known.
  void simulate(const std::vector<std::size_t>& rows) { linear_.simulate(rows); }
  // Simulates the derivatives of these rows by the parameters for which `wanted` returns true, towards a slower
  // machine.
  void differentiate(const std::vector<std::size_t>& rows, const LinearRows::Wanted& wanted) {
    linear_.differentiate(rows, wanted);
  }

  // The standard deviation of a row: RobustFitOptions::error, or the robust one of the residuals, at least least_error.
  // A residual counts for more if its row determines parameters (leverage: Cook and Weisberg, Residuals and Influence
  // in Regression, 1982).
  double scale() const;
  // The covariance of the coordinates, from the fitted rows and the starting values.
  Matrix covariance() const;
  // The column of a parameter in the covariance if the others may pass a kink: they have the larger derivatives of both
  // directions. One limit may then replace another that is nearly equal. `scale`: the standard deviation of a row.
  // Precondition: refresh() at the present values.
  Vector covariance_beside_kinks(std::size_t parameter, double scale) const;
  const Vector& coordinates() const { return linear_.coordinates(); }

 private:
  struct Row {
    RowUse use = RowUse::fitted;
    bool confirmed = false;  // measured more than once
    double measured = 0;
    std::optional<std::size_t> group{};
  };

  bool counts(std::size_t row) const;
  // The rows of a row's group that count; none if it has no group.
  std::vector<std::size_t> peers(std::size_t row) const;
  // The logarithm of the factor of a row's group, with these figures or the present ones; 0 without a group.
  double factor(std::size_t row, const std::vector<double>& simulated) const;
  double factor(std::size_t row) const;
  // The variance of a row: that of all rows, and the noise of its simulation.
  double variance(std::size_t row, double scale) const;
  // Of the square of its residual.
  double weight(std::size_t row, double scale) const;
  Loss loss_of(std::size_t row) const;
  double loss_of(std::size_t row, double residual, double variance) const;
  using DerivativesOf = std::function<Vector(const LinearRows::Row&)>;
  // Of the row's figure, or of its ratio to those of its group.
  Vector derivatives(std::size_t row, const DerivativesOf& of) const;
  Matrix information(double scale, const DerivativesOf& of) const;
  Matrix covariance(double scale) const;
  std::vector<std::size_t> rows_if(const std::function<bool(std::size_t)>& wanted) const;
  std::vector<std::size_t> fitted_rows() const;
  std::vector<std::size_t> counted_rows() const;
  // The figures of the fitted rows. Nothing if many runs fail, which the present values do not.
  std::optional<std::vector<double>> figures_at(const Vector& x) const;
  bool too_many_fail(const std::vector<std::size_t>& rows, const std::vector<double>& figures) const;
  // cost_at() that simulates the rows for which `changes` returns true.
  double cost_of_changed(const Vector& at, double scale, const std::function<bool(std::size_t)>& changes) const;
  double cost_of(const std::vector<double>& simulated, const Vector& x, double scale) const;
  void scan(std::size_t p);
  struct Step {
    Vector moved;
    double gain;  // of the cost, as the derivatives foretell
  };
  Step step(double damping, double scale) const;
  bool try_step(double& damping);
  std::vector<std::size_t> poor_rows(const Vector& moved, const std::vector<double>& simulated, double line) const;
  void accept(const Vector& to, const std::vector<double>& simulated);

  LinearRows linear_;
  RobustFitOptions options_;
  Vector start_;
  std::vector<bool> held_;                        // by parameter
  std::vector<Row> rows_;                         // as in linear_
  std::vector<std::vector<std::size_t>> groups_;  // their rows
};

}  // namespace verbscope
