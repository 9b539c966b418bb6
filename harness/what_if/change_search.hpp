// Searches for option changes that raise a rate. Tries the values of each option alone, then combinations; for a
// target, finds the fewest changes that reach it. Every gain is measured by a run, none is estimated.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/what_if/limit_search.hpp"
#include "harness/what_if/point_options.hpp"

namespace verbscope {

// Limits of a search. Unless the user sets them (`given`), all single changes run, and combinations run within `runs`.
struct RunBudget {
  std::size_t runs = 60;  // 0: no limit
  std::optional<std::chrono::steady_clock::duration> time{};
  bool given = false;
};

// Parses "60" (runs) or "10s" (time); 0: no limit. Throws a UsageError that names --budget.
RunBudget parse_budget(const std::string& text);

struct Target {
  enum class Unit { mops, gbit_per_s, us };
  double value = 0;
  Unit unit = Unit::mops;

  std::string text() const;
  // The outcome's value in this unit; 0 if it has none.
  double of(const TrialOutcome& outcome) const;
  bool reached(const TrialOutcome& outcome) const;
};

// Parses "30 Mops", "90 Gb/s" or "2 us"; a plain number is Mops. Throws a UsageError that names --target.
Target parse_target_rate(const std::string& text);

struct TriedChange {
  Json options = Json::object();
  std::string text{};  // "--post_list 16 (now 1)"
  TrialOutcome outcome{};
};

class ChangeSearch {
 public:
  // Runs the point once with each of these sets of options, some at the same time.
  using RunChanged = std::function<std::vector<TrialOutcome>(const std::vector<Json>&)>;

  ChangeSearch(std::vector<OptionChoices> choices, TrialOutcome base, RunBudget budget, RunChanged run);

  // Returns the best value of each option and combinations in which each change contributes, if the gain is kWorthwhile
  // or more. Sorted by gain, best first.
  std::vector<TriedChange> find();
  // Returns the fewest changes that reach the target, else the best changes found. No options: the point itself reaches
  // it.
  TriedChange reach(const Target& target);

  // Single changes that the program accepts, and the number of those that were run.
  std::size_t neighbours() const { return run_count_ + left_out_; }
  std::size_t neighbours_run() const { return run_count_; }

 private:
  // One option set to a value. `index`: of the option.
  struct Step {
    std::size_t index;
    Json value;
  };
  using Steps = std::vector<Step>;
  // A value that was run, or that the program refused.
  struct Tried {
    Json value;
    TrialOutcome outcome;
  };
  // Several steps together, and their outcome.
  struct State {
    Steps steps;
    TrialOutcome outcome;
  };

  double gain(const TrialOutcome& outcome) const { return outcome.failure.empty() ? outcome.mops / base_.mops : 0; }
  bool budget_spent() const;
  void try_singles();
  void run_singles(const Steps& steps);
  const Tried* tried(std::size_t index, const Json& value) const;
  // The value `from` * `factor`, limited to the range of the option. Null if that is the current value or was tried.
  Json scaled(std::size_t index, double from, double factor) const;
  Steps first_steps() const;
  Steps further_steps() const;
  Steps refining_steps() const;
  const Tried* best(std::size_t index) const;
  // The best value of each further option that may help in this state.
  Steps additions(const State& state) const;
  std::vector<State> extended(const State& state, const Steps& steps);
  std::vector<State> climb(State state, std::size_t max_runs);
  // Single changes from which combinations start.
  std::vector<State> start_states() const;
  TriedChange change_of(const State& state) const;

  std::vector<OptionChoices> choices_;
  TrialOutcome base_;
  RunBudget budget_;
  RunChanged run_;
  std::chrono::steady_clock::time_point begin_;
  std::vector<std::vector<Tried>> tried_;  // by option
  std::size_t run_count_ = 0, left_out_ = 0, runs_ = 0;
};

}  // namespace verbscope
