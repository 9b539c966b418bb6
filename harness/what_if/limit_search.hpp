// Which resource limits a point, or which two only together: found by trying twice of each, with as few runs as decide.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/explain.hpp"

namespace verbscope {

struct TrialOutcome {
  double mops = 0;
  double gbit_per_s = 0;  // 0: the benchmark reports none
  double latency_us = 0;  // the median; 0 likewise
  std::string failure{};  // empty: it ran
};

class LimitSearch {
 public:
  using Set = std::vector<Resource>;
  // Runs each set doubled, some at the same time: an outcome for each.
  using RunDoubled = std::function<std::vector<TrialOutcome>(const std::vector<Set>&)>;

  // `resources` are those that can be doubled, each a capacity, the most likely limit first. Those that options make
  // are always tried by themselves. `apart` are those that no other is doubled with: twice of them is twice of
  // everything. Gains are against `base_mops`.
  LimitSearch(Set resources, Set apart, double base_mops, RunDoubled run);

  // One resource that brings kWorthwhile or more, the one that brings most; else two that do together; else none.
  struct Found {
    Set limits;
    double gain = 1;
  };
  Found find();

  // The runs of single resources and of groups, in the order in which they were made; those that failed.
  const std::vector<TriedTwice>& tried() const { return tried_; }
  const std::vector<std::string>& failed() const { return failed_; }

 private:
  using Sets = std::vector<Set>;

  void run(const Sets& sets);
  double gain(const Set& set) const;
  bool is_apart(Resource resource) const;
  // The set of `sets` that brings most; the first of those that bring the same.
  const Set* best_of(const Sets& sets) const;
  Sets singles() const;
  void try_singles();
  void split(Set group);
  Found find_pair();

  Set resources_, apart_;
  double base_mops_;
  RunDoubled run_;
  std::map<Set, std::optional<double>> gains_;  // none: the run failed
  std::vector<TriedTwice> tried_;
  std::vector<std::string> failed_;
};

}  // namespace verbscope
