// Learns the parameters of a cluster: measures points, fits, and chooses the next points, or fits records that exist.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/learn/candidates.hpp"
#include "harness/learn/intervals.hpp"
#include "harness/learn/robust_fit.hpp"
#include "harness/learn/simulated_figures.hpp"
#include "harness/learn/starts.hpp"
#include "harness/learn/told_facts.hpp"

namespace verbscope {

// A measured figure and the point that measures it.
struct MeasuredFigure {
  Point point;
  std::string key;      // of the figure in the result
  double figure = 0;    // in its unit
  std::string server;   // host that was the server; empty if unknown
  std::string group{};  // of figures with an unknown common factor; empty: the figure counts as it is
};

// The figure of a record; nothing if it failed or has none.
std::optional<MeasuredFigure> measured_figure(const Record& record, LearnPrograms& programs);

// The figure of a point that was measured several times: the middle one of those that agree, or the fastest if none do,
// because disturbances slow down. Precondition: not empty, and figures of one point.
struct UsualFigure {
  double figure = 0;
  bool confirmed = false;  // at least two agree
};
UsualFigure usual_figure(const std::vector<MeasuredFigure>& figures);

// A measured point and its row in the fit.
struct LearnedPoint {
  Point point;
  std::vector<MeasuredFigure> measured;
  std::string kind;
  std::size_t row = 0;
};

// The profile from which a fit starts.
struct StartProfile {
  std::string name;    // of the known cluster
  Json profile;        // with the facts that the hosts state
  double error = 0;    // median of the absolute logarithmic errors on the points that chose it
  double seconds = 0;  // of the mean simulation of one of these points, on one CPU
};

// The two of these profiles (names or paths) whose figures are nearest to the measured ones, the nearest first.
// Profiles of other families of adapters or types of networks do not compete. Throws UsageError if none is left.
std::vector<StartProfile> nearest_profiles(const std::vector<std::string>& names, const ToldFacts& told,
                                           const std::vector<MeasuredFigure>& measured, const CandidateFacts& facts,
                                           LearnPrograms& programs, std::size_t jobs, StopSource* stop);

class Learner {
 public:
  // `programs` must outlive the learner.
  Learner(StartProfile start, CandidateFacts facts, LearnPrograms& programs, std::size_t jobs, std::uint64_t seed,
          StopSource* stop);

  // Adds a measured figure, for the fit or to judge it.
  void add(const MeasuredFigure& measured, bool held_out);
  // Fits all parameters to the records so far, by up to this many steps: roughly, with the loss that finds the right
  // values from afar; thoroughly, then also with the loss that ignores outliers; or after further points.
  void fit_roughly(int steps);
  void fit_thoroughly(int steps);
  void fit(int steps);
  // The same from other values; keeps the better fit. Precondition: fit().
  void fit_again(int steps) { improve_from_slower_side(fit_, steps); }

  // The mean absolute error of the logarithms of all points, those that judge the fit too. An outlier counts little.
  double mean_error();

  // The first points: candidates of all kinds, at most `most`.
  // Doubtful: up to `count` points that the fit does not explain, to measure them once more, on another host.
  // Later: up to `count` candidates that are not measured yet, those with the greatest expected gain, then every
  // fifth at random to judge the fit. Empty if no point would gain anything.
  struct Choice {
    Point point;
    bool held_out = false;
    std::vector<std::string> measured_on{};  // hosts
  };
  std::vector<Choice> first_choices(std::size_t most);
  std::vector<Choice> doubtful_points(std::size_t count) const;
  std::vector<Choice> next_choices(std::size_t count);

  // The last steps, intervals at the final values, and the figures of the rows that judge the fit.
  void finish();
  // By parameter. Precondition: finish().
  const std::vector<LearnedInterval>& intervals() const { return intervals_; }

  const RobustFit& figures() const { return fit_; }
  const std::vector<LearnedPoint>& points() const { return points_; }
  const StartProfile& start() const { return start_; }
  Json profile() const;
  std::size_t runs() const { return simulated_->runs(); }

 private:
  std::size_t add_row(const Point& point, const std::string& key, double figure, RowUse use);
  std::size_t add_point(const MeasuredFigure& measured, RowUse use);
  std::size_t group_number(const std::string& group);
  std::vector<std::size_t> unmeasured() const;
  void set_measured(const LearnedPoint& point);
  std::vector<std::size_t> point_rows() const;

  StartProfile start_;
  CandidateFacts facts_;
  LearnPrograms& programs_;
  std::uint64_t seed_;
  std::vector<FitParameter> parameters_;
  std::unique_ptr<SimulatedFigures> simulated_;
  RobustFit fit_;
  std::vector<Candidate> pool_;
  std::vector<std::optional<std::size_t>> candidate_rows_;  // by candidate
  std::vector<bool> measured_;                              // by candidate
  std::vector<LearnedPoint> points_;
  std::vector<std::string> groups_;
  std::vector<LearnedInterval> intervals_;
};

}  // namespace verbscope
