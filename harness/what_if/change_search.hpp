// Which changes of options raise a rate: each option's values are tried alone, then combined, and a target is reached
// with the fewest. Nothing is deduced: each gain is that of a run.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/what_if/limit_search.hpp"
#include "harness/what_if/neighbours.hpp"

namespace verbscope {

// How many runs a search may make, and until when. Without a person's own choice single changes are run completely,
// and combinations of them within `runs`.
struct RunBudget {
  std::size_t runs = 60;  // 0: no limit
  std::optional<std::chrono::steady_clock::duration> time{};
  bool given = false;
};

// "60", "10s"; 0: no limit. Throws a UsageError that names --budget.
RunBudget parse_budget(const std::string& text);

struct Target {
  enum class Unit { mops, gbit_per_s, us };
  double value = 0;
  Unit unit = Unit::mops;

  std::string text() const;
  // What the outcome has in this unit; 0 where it reports none.
  double of(const TrialOutcome& outcome) const;
  bool reached(const TrialOutcome& outcome) const;
};

// "30 Mops", "90 Gb/s", "2 us"; a number alone is of Mops. Throws a UsageError that names --target.
Target parse_target_rate(const std::string& text);

struct TriedChange {
  Json options = Json::object();
  std::string text{};  // "--post_list 16 (now 1)"
  TrialOutcome outcome{};
};

class ChangeSearch {
 public:
  // Runs the point with each of these sets of options, some at the same time.
  using RunChanged = std::function<std::vector<TrialOutcome>(const std::vector<Json>&)>;

  ChangeSearch(std::vector<OptionLadder> ladders, TrialOutcome base, RunBudget budget, RunChanged run);

  // The best value of each option, and combinations of which each change adds to the gain; those that gain
  // kWorthwhile or more, the best first.
  std::vector<TriedChange> find();
  // The fewest changes that reach it, else the best that was found. No options: the point as it is.
  TriedChange reach(const Target& target);

  // Single changes that the program takes, and those of them that were run.
  std::size_t neighbours() const { return run_count_ + left_out_; }
  std::size_t neighbours_run() const { return run_count_; }

 private:
  // A value of an option.
  struct Step {
    std::size_t ladder;
    Json value;
  };
  using Steps = std::vector<Step>;
  // Values of an option that were run, or that the program refused.
  struct Tried {
    Json value;
    TrialOutcome outcome;
  };
  // Several steps, and what they brought.
  struct State {
    Steps steps;
    TrialOutcome outcome;
  };

  double gain(const TrialOutcome& outcome) const { return outcome.failure.empty() ? outcome.mops / base_.mops : 0; }
  bool spent() const;
  void try_singles();
  void run_singles(const Steps& steps);
  const Tried* tried(std::size_t ladder, const Json& value) const;
  // The value `factor` times as high as `from`, in the range of the option; null where that is none, or was tried.
  Json scaled(std::size_t ladder, double from, double factor) const;
  Steps first_steps() const;
  Steps further_steps() const;
  Steps refining_steps() const;
  const Tried* best(std::size_t ladder) const;
  // Steps to add to a state: the best of each other option that may help.
  Steps additions(const State& state) const;
  std::vector<State> extended(const State& state, const Steps& steps);
  std::vector<State> climb(State state, std::size_t most_runs);
  // Single changes from which combinations are made.
  std::vector<State> beginnings() const;
  TriedChange change_of(const State& state) const;

  std::vector<OptionLadder> ladders_;
  TrialOutcome base_;
  RunBudget budget_;
  RunChanged run_;
  std::chrono::steady_clock::time_point begin_;
  std::vector<std::vector<Tried>> tried_;  // by ladder
  std::size_t run_count_ = 0, left_out_ = 0, runs_ = 0;
};

}  // namespace verbscope
