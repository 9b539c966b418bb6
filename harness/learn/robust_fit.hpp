// Fits parameters to measured figures, whose logarithms it compares with those of simulated runs: Levenberg and
// Marquardt's method (Marquardt, J. SIAM 11, 1963) with a robust loss and simulated derivatives.
//
// Simulations are the cost: each row of the Jacobian is simulated once, and again where a step showed that it is wrong.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "harness/learn/parameters.hpp"

namespace verbscope {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

// One figure to simulate: row `row` with these parameter values.
struct FitTrial {
  std::vector<double> values;
  std::size_t row = 0;
  std::uint64_t seed = 1;  // of the simulation
};

// Returns the logarithm of the figure of each trial; NaN if its run failed.
using LogFigures = std::function<std::vector<double>(const std::vector<FitTrial>&)>;

// What a residual costs. Huber's loss has one minimum, so that rows that disagree with a wrong start still pull;
// Cauchy's ignores outliers, for values that are nearly right.
enum class Loss { squares, huber, cauchy };

struct RobustFitOptions {
  // Standard deviation of the starting values' coordinates: a parameter that the rows do not determine stays at its
  // start (ridge regression: Hoerl and Kennard, Technometrics 12, 1970).
  double known_within = 1;
  double least_error = 0.01;  // standard deviation of an accurate row, of its logarithm
  double error = 0;           // standard deviation of a row; 0: estimated from the residuals
  Loss loss = Loss::huber;
};

// A candidate has no measured figure yet. A row that is held out judges the fit.
enum class RowUse { candidate, fitted, held_out };

// The direction in which a parameter is moved: towards a slower machine, or a faster one.
enum class Side { slower, faster };

class RobustFit {
 public:
  RobustFit(std::vector<FitParameter> parameters, LogFigures figures, const RobustFitOptions& options);

  // Adds a row. Parameters that need other properties do not change its figure. Returns its index.
  std::size_t add_row(RowUse use, double log_measured, std::uint32_t properties);
  // Turns a candidate into a row with a measured figure.
  void set_measured(std::size_t row, RowUse use, double log_measured);

  // Improves the values by up to `steps` steps, until one gains less than half a hundredth of the cost. Returns false
  // after such a step.
  bool improve(int steps);
  void set_loss(Loss loss) { options_.loss = loss; }
  // Moves to these coordinates. Returns false, and moves nothing, if many simulations fail there. Precondition:
  // improve().
  bool move_to(const Vector& at);
  // improve() leaves this parameter as it is, or none.
  void hold(std::optional<std::size_t> parameter) { held_ = parameter; }
  // What the search minimises, at the present values and with this standard deviation of a row.
  double cost(double scale) const;
  // Simulates all derivatives of the fitted rows at the present values again, for the covariance: the smaller one of
  // both directions, because a parameter that limits in one direction only has no value that follows from the rows.
  void refresh();

  const std::vector<FitParameter>& parameters() const { return parameters_; }
  std::vector<double> values() const { return values_at(x_); }

  std::size_t rows() const { return rows_.size(); }
  RowUse use(std::size_t row) const { return rows_[row].use; }
  double measured(std::size_t row) const { return rows_[row].measured; }
  // The logarithm of the simulated figure; NaN if the run failed. Precondition: simulate() at the present values, for
  // rows that are not fitted.
  double simulated(std::size_t row) const { return rows_[row].simulated; }
  double residual(std::size_t row) const { return rows_[row].measured - rows_[row].simulated; }
  // By coordinate. Precondition: they were simulated, as for each fitted row.
  const Vector& derivatives(std::size_t row) const { return rows_[row].derivatives; }
  // Simulates the figures of these rows at the present values, unless they are known.
  void simulate(const std::vector<std::size_t>& rows);
  // Simulates the derivatives of these rows by the parameters for which `wanted` returns true.
  void differentiate(const std::vector<std::size_t>& rows, const std::function<bool(std::size_t)>& wanted);

  // The standard deviation of a row: RobustFitOptions::error, or the robust one of the residuals, at least least_error.
  // A residual counts for more if its row determines parameters (leverage: Cook and Weisberg, Residuals and Influence
  // in Regression, 1982).
  double scale() const;
  // The covariance of the coordinates, from the fitted rows and the starting values.
  Matrix covariance() const;
  const Vector& coordinates() const { return x_; }

 private:
  struct Row {
    RowUse use = RowUse::fitted;
    double measured = 0, simulated = 0;
    std::uint32_t properties = 0;
    bool has_figure = false, has_derivatives = false;
    double noise = 0;  // difference between simulations with other seeds, of the logarithm
    Vector derivatives{};
  };

  // A derivative: of a row, by a parameter.
  struct Cell {
    std::size_t row, parameter;
  };

  bool counts(const Row& row) const;
  std::vector<double> slopes(const std::vector<Cell>& cells, Side side);
  // The variance of a row: that of all rows, and the noise of its simulation.
  double variance(const Row& row, double scale) const;
  // Of the square of its residual.
  double weight(const Row& row, double scale) const;
  double loss_of(double residual, double variance) const;
  void measure_noise(const std::vector<std::size_t>& rows);
  // The groups whose parameters change the figure of each row, by row and group.
  std::vector<std::vector<bool>> active_groups(const std::vector<std::size_t>& rows,
                                               const std::function<bool(std::size_t)>& wanted);
  bool may_change(const Row& row, std::size_t parameter) const {
    return (parameters_[parameter].needs & ~row.properties) == 0;
  }
  Matrix information(double scale) const;
  Matrix covariance(double scale) const;
  std::vector<double> values_at(const Vector& x) const;
  Vector within_range(Vector x) const;
  std::vector<std::size_t> fitted_rows() const;
  // By row; 0 for rows that are not fitted. Nothing if many runs fail, which the present values do not.
  std::optional<std::vector<double>> figures_at(const Vector& x);
  double cost_of(const std::vector<double>& simulated, const Vector& x, double scale) const;
  Vector step(double damping, double scale) const;
  bool try_step(double& damping);
  void learn_noise(const Vector& moved, const std::vector<double>& simulated);
  void accept(const Vector& to, const std::vector<double>& simulated);

  std::vector<FitParameter> parameters_;
  LogFigures figures_;
  RobustFitOptions options_;
  Vector start_, x_;
  std::optional<std::size_t> held_;  // parameter that does not move
  std::vector<Row> rows_;
};

}  // namespace verbscope
