// Which resource, or which two, limit a point: found by trying twice of each, with as few runs as tell it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/what_if.hpp"

namespace verbscope {

// One run: what is different from the point as it is.
struct Trial {
  std::vector<Resource> doubled{};  // capacities of which there is twice, `outstanding` among them
  Json options = Json::object();    // of the program

  bool operator==(const Trial&) const = default;
};

struct TrialOutcome {
  double mops = 0;
  std::string limit{};    // in words, what limits it then, in closed form
  std::string failure{};  // empty: it ran
};

// Runs them, some at the same time: an outcome for each.
using RunTrials = std::function<std::vector<TrialOutcome>(const std::vector<Trial>&)>;

class LimitSearch {
 public:
  // `resources` are what there is to double, each a capacity, the most likely limit first. `apart` are those that no
  // other is doubled with: twice of them is twice of everything. Gains are told against `base_mops`.
  LimitSearch(std::vector<Resource> resources, std::vector<Resource> apart, double base_mops, RunTrials run);

  // One resource, or two that are near each other or that bring clearly more together, with their gains.
  struct Found {
    std::optional<GainOfTwice> first, second;  // no first: nothing that was tried raises the rate
    double gain_of_all = 1;
  };
  Found find();

  // The runs of single resources, and of pairs, in the order in which they were made; those that failed.
  const std::vector<TriedTwice>& tried() const { return tried_; }
  const std::vector<std::string>& failed() const { return failed_; }

 private:
  using Set = std::vector<Resource>;
  using Sets = std::vector<Set>;

  void run(const Sets& sets);
  std::optional<double> gain(const Set& set) const;
  std::optional<double> gain(Resource resource) const { return gain(Set{resource}); }
  // The least that a resource must bring to be told beside the best.
  double counts() const;
  // The single resource that brings most.
  std::optional<GainOfTwice> best() const;
  void try_singles();
  void try_groups(Sets groups);
  std::vector<Resource> near(Resource first) const;
  std::optional<Found> best_pair(const Sets& pairs);
  Sets pairs_with(Resource first, const std::vector<Resource>& partners) const;

  std::vector<Resource> resources_, apart_;
  double base_mops_;
  RunTrials run_;
  std::map<Set, std::optional<double>> gains_;  // none: the run failed
  std::vector<TriedTwice> tried_;
  std::vector<std::string> failed_;
};

}  // namespace verbscope
