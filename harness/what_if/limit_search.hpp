// Finds the resource that limits a point, or the pair of resources that limit it together. Runs the point with twice as
// much of them, in as few runs as possible.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/explain.hpp"
#include "harness/what_if/simulated_runs.hpp"

namespace verbscope {

class LimitSearch {
 public:
  using Set = std::vector<Resource>;
  // Runs the point once per set with the resources of the set doubled, some at the same time.
  using RunDoubled = std::function<std::vector<TrialOutcome>(const std::vector<Set>&)>;

  // `resources`: capacities that can be doubled, most likely limit first. Resources that options determine are always
  // tried alone. `apart`: resources that are never doubled with others, because doubling them doubles everything. Gains
  // are relative to `base_mops`.
  LimitSearch(Set resources, Set apart, double base_mops, RunDoubled run);

  // Returns the resource with the largest gain, if that is kWorthwhile or more; else two or more resources that reach
  // it together; else none.
  struct Found {
    Set limits;
    double gain = 1;
  };
  Found find();

  // Runs of single resources and of groups in the order in which they were made, and the failed ones.
  const std::vector<DoublingRun>& tried() const { return tried_; }
  const std::vector<std::string>& failed() const { return failed_; }

 private:
  using Sets = std::vector<Set>;

  void run(const Sets& sets);
  double gain(const Set& set) const;
  bool is_apart(Resource resource) const;
  // The set with the largest gain; the first of equal ones.
  const Set* best_of(const Sets& sets) const;
  Sets singles() const;
  void try_singles();
  void split(Set group);
  Found find_pair();

  Set resources_, apart_;
  double base_mops_;
  RunDoubled run_;
  std::map<Set, std::optional<double>> gains_;  // empty: the run failed
  std::vector<DoublingRun> tried_;
  std::vector<std::string> failed_;
};

// Fills in the limits, the gains, and the tried and failed runs. `basis`: a simulated record of the point, whose busy
// times determine the likely resources. Throws Error if no run succeeded, InterruptedError at the stop.
void find_limits(const Record& basis, SimulatedRuns& runs, Explanation& out);

}  // namespace verbscope
