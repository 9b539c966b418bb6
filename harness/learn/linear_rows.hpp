// Figures of points around the present values of the parameters: a simulated figure, its noise, and its derivatives for
// each row, whose logarithms are close to linear in the coordinates.
//
// Simulations are the cost: each row is differentiated once, corrected by long steps, and differentiated again where a
// step showed that it is wrong, then in the direction of that step. Figures have kinks where one limit takes over from
// another: a derivative holds on one side only.
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

// The interval that a simulation measures: a short one, or the usual one of its point, in which a rate is steady.
enum class SimulatedInterval : std::uint8_t { shortened, usual };

// One figure to simulate: row `row` with these parameter values.
struct FitTrial {
  std::vector<double> values;
  std::size_t row = 0;
  std::uint64_t seed = 1;  // of the simulation
  SimulatedInterval interval = SimulatedInterval::shortened;
};

// Returns the logarithm of the figure of each trial; NaN if its run failed.
using LogFigures = std::function<std::vector<double>(const std::vector<FitTrial>&)>;

class LinearRows {
 public:
  struct Row {
    std::uint32_t properties = 0;
    // The logarithm of the simulated figure; NaN if the run failed. At the present coordinates if `has_figure`.
    double simulated = 0;
    bool has_figure = false, has_derivatives = false;
    double correction = 0;                  // of figures of short intervals; `simulated` includes it
    std::optional<double> corrected_for{};  // the value of `simulated` when the correction was simulated
    double noise = 0;                       // difference between simulations with other seeds, of the logarithm
    Vector derivatives{};
    Vector taken_at{};             // coordinates at which the derivatives were simulated
    Vector steeper{};              // derivatives, the larger ones of both directions; refresh()
    std::vector<bool> moved_by{};  // by parameter: it changes the figure in one direction at least; refresh()
  };
  using Rows = std::vector<std::size_t>;
  using Wanted = std::function<bool(std::size_t)>;  // by parameter

  // At the starting values of the parameters.
  LinearRows(std::vector<FitParameter> parameters, LogFigures figures);

  // Adds a row. Parameters that need other properties do not change its figure. Returns its index.
  std::size_t add(std::uint32_t properties);

  std::size_t size() const { return rows_.size(); }
  const Row& operator[](std::size_t row) const { return rows_[row]; }
  const std::vector<FitParameter>& parameters() const { return parameters_; }
  const Vector& coordinates() const { return x_; }
  std::vector<double> values_at(const Vector& x) const;
  Vector within_range(Vector x) const;
  bool may_change(std::size_t row, std::size_t parameter) const {
    return verbscope::may_change(parameters_[parameter], rows_[row].properties);
  }
  // A parameter that differs there may change the figure of the row. After refresh() of the row: changes it.
  bool changes_at(std::size_t row, const Vector& x) const;

  // Simulates the figures of these rows at the present coordinates, unless they are known.
  void simulate(const Rows& rows);
  // Simulates these rows in their usual intervals too. The difference corrects their figures of short intervals from
  // then on. A row whose figure is the same as at the last correction keeps that. Returns true if a correction changed.
  bool correct(const Rows& rows);
  // The figures of these rows at other coordinates, by row of the model; present figures of all others.
  std::vector<double> figures_at(const Vector& x, const Rows& rows) const;
  // Simulates the derivatives by the parameters for which `wanted` returns true, towards a slower machine.
  void differentiate(const Rows& rows, const Wanted& wanted);
  // The same for all parameters of rows that have no derivatives.
  void differentiate_new(const Rows& rows);
  // The same in this direction, with steps of its size, of those of the rows whose change the derivatives did not
  // foretell.
  void differentiate(const Rows& rows, const Vector& towards);
  // The rows whose derivatives were simulated too far from the present coordinates to hold there.
  Rows stale(const Rows& rows) const;
  // The rows whose change to these figures the derivatives do not foretell, with an error of more than `line` and a
  // share of the change.
  Rows poor(const Rows& rows, const Vector& moved, const std::vector<double>& figures, double line) const;
  // Moves to these coordinates, where these rows have these figures. Corrects derivatives, and simulates those of
  // `poor` again. Other rows have no figure afterwards.
  void move(const Vector& to, const Rows& rows, const std::vector<double>& figures, const Rows& poor);
  // Moves to coordinates at which the figures are about the same, and so are the derivatives of all rows but `changed`.
  void move_to_similar(const Vector& to, const Rows& rows, const std::vector<double>& figures, const Rows& changed);
  // Takes what the derivatives do not foretell for noise.
  void learn_noise(const Rows& rows, const Vector& moved, const std::vector<double>& figures);
  // Simulates all derivatives of these rows again: the smaller one of both directions, because a parameter that limits
  // in one direction only has no value that follows from the rows.
  void refresh(const Rows& rows);

 private:
  // A derivative: of a row, by a parameter.
  struct Cell {
    std::size_t row, parameter;
  };
  // Parameters of a row that are moved together.
  struct CellSet {
    std::size_t row = 0;
    std::vector<std::size_t> parameters{};
  };

  std::vector<double> corrected_figures(const std::vector<FitTrial>& trials) const;
  // The change of a parameter's coordinate for its derivative: a step in the direction `towards`, or to the other side
  // if that leaves the range, longer than usual by this factor. Whole numbers differ by at least one. Nothing if there
  // is no other value.
  std::optional<double> neighbour(std::size_t parameter, double towards, double factor = 1) const;
  Vector slower() const;  // the direction of a slower machine, by coordinate
  bool is_change(const Row& row, double figure) const;
  void measure_noise(const Rows& rows);
  void place(const Vector& at, const Rows& rows, const std::vector<double>& figures);
  // By set: moving all its parameters in the direction `towards` changes the figure of its row.
  std::vector<bool> any_changes(const std::vector<CellSet>& sets, const Vector& towards) const;
  // The derivatives to simulate: those that are known not to be 0, and those of parameters that change something
  // together with the others of their group. Parameters that slow the machine down are not moved together with
  // parameters that make it faster.
  std::vector<Cell> active(const Rows& rows, const Wanted& wanted, const Vector& towards) const;
  bool is_stale(const Row& row) const;
  // The figure changes so little by the usual step that a longer one shows the derivative better.
  bool is_weak(const Row& row, double slope) const;
  std::vector<double> slopes(const std::vector<Cell>& cells, const Vector& towards) const;
  std::vector<double> slopes_by(double factor, const std::vector<Cell>& cells, const Vector& towards) const;
  void differentiate(const Rows& rows, const Wanted& wanted, const Vector& towards);

  std::vector<FitParameter> parameters_;
  LogFigures figures_;
  Vector x_;
  std::vector<Row> rows_;
};

}  // namespace verbscope
