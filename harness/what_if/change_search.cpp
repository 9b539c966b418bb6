#include "harness/what_if/change_search.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "common/cli.hpp"
#include "common/error.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

// A numeric option is tried at these factors, the far one first, then at the square of the far one. A loss at one value
// does not exclude a gain at the next: rates have cliffs, and caches have sizes.
constexpr double kFar = 4, kNear = 2;
constexpr double kMinHarmlessGain = 0.97;
// Gains within this share of the best count as equal; the value nearest to the current one is chosen.
constexpr double kEqualGain = 0.005;
// An option with at least this gain alone may gain more in combination.
constexpr double kPromisingGain = 1.005;
// Number of combinations that are tried in any case, whatever the number of single changes.
constexpr std::size_t kMinCombinedRuns = 40;
// Post lists help only if several requests are ready, and own doorbell registers only if a lock is contended. Both
// start combinations even without a gain alone.
constexpr std::string_view kPostList = "post_list", kRegisters = "uars";
constexpr int kUsualPostList = 16;
constexpr std::array<std::string_view, 3> kCombinedOptions = {kPostList, "qp", "threads"};
// Maximum number of refinement steps (half and twice the best value) per option.
constexpr int kMaxRefinements = 4;
// Maximum number of combined changes for a target, and number of states that are extended per step.
constexpr std::size_t kMaxChanges = 4, kMaxStates = 5;

bool ran(const TrialOutcome& outcome) {
  return outcome.failure.empty();
}

double number_of(const Json& value) {
  return value.is_number() ? value.get<double>() : 0;
}

}  // namespace

RunBudget parse_budget(const std::string& text) {
  RunBudget out{.given = true};
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (digits && text.size() <= 6) {
    out.runs = static_cast<std::size_t>(std::stoul(text));
    return out;
  }
  if (digits) fail_usage("--budget {}: expected at most 999999 runs, or a time such as 10s", text);
  try {
    out.time = std::chrono::nanoseconds(parse_duration(text, "--budget").count() / 1000);
  } catch (const UsageError&) {
    fail_usage("--budget: expected a number of runs, or a time such as 10s, got \"{}\"", text);
  }
  out.runs = 0;
  return out;
}

Target parse_target_rate(const std::string& text) {
  Target out;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.value);
  std::string unit(end, text.data() + text.size());
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  const bool known = unit.empty() || unit == "Mops" || unit == "Gb/s" || unit == "us";
  if (error != std::errc{} || !known || !(out.value > 0) || !std::isfinite(out.value))
    fail_usage("--target: expected a number above 0 of Mops, Gb/s or us, such as \"30 Mops\", got \"{}\"", text);
  out.unit = unit == "Gb/s" ? Target::Unit::gbit_per_s : unit == "us" ? Target::Unit::us : Target::Unit::mops;
  return out;
}

std::string Target::text() const {
  return fmt::format("{:g} {}", value, unit == Unit::mops ? "Mops" : unit == Unit::us ? "us" : "Gb/s");
}

double Target::of(const TrialOutcome& outcome) const {
  return unit == Unit::mops ? outcome.mops : unit == Unit::us ? outcome.latency_us : outcome.gbit_per_s;
}

bool Target::reached(const TrialOutcome& outcome) const {
  if (!ran(outcome)) return false;
  return unit == Unit::us ? of(outcome) > 0 && of(outcome) <= value : of(outcome) >= value;
}

ChangeSearch::ChangeSearch(std::vector<OptionChoices> choices, TrialOutcome base, RunBudget budget, RunChanged run)
    : choices_(std::move(choices)),
      base_(std::move(base)),
      budget_(budget),
      run_(std::move(run)),
      begin_(Clock::now()),
      tried_(choices_.size()) {}

bool ChangeSearch::budget_spent() const {
  return (budget_.runs > 0 && runs_ >= budget_.runs) || (budget_.time && Clock::now() - begin_ >= *budget_.time);
}

const ChangeSearch::Tried* ChangeSearch::tried(std::size_t index, const Json& value) const {
  const auto found = std::ranges::find(tried_[index], value, &Tried::value);
  return found == tried_[index].end() ? nullptr : &*found;
}

Json ChangeSearch::scaled(std::size_t index, double from, double factor) const {
  const OptionChoices& of = choices_[index];
  const double value = std::clamp(std::round(from * factor), of.low, of.high);
  const Json json = static_cast<std::int64_t>(value);
  return value == number_of(of.now) || tried(index, json) != nullptr ? Json() : json;
}

ChangeSearch::Steps ChangeSearch::first_steps() const {
  Steps out;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const OptionChoices& choices = choices_[i];
    for (const Json& value : choices.values) out.push_back({i, value});
    if (!choices.number) continue;
    for (const double factor : {kFar, 1 / kFar}) {
      const Json value = scaled(i, number_of(choices.now), factor);
      if (!value.is_null()) out.push_back({i, value});
    }
  }
  return out;
}

// The second round: nearer and farther values.
ChangeSearch::Steps ChangeSearch::further_steps() const {
  Steps out;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (!choices_[i].number) continue;
    for (const double factor : {kNear, 1 / kNear, kFar * kFar, 1 / (kFar * kFar)}) {
      const Json value = scaled(i, number_of(choices_[i].now), factor);
      const auto same = [&](const Step& step) { return step.index == i && step.value == value; };
      if (!value.is_null() && std::ranges::none_of(out, same)) out.push_back({i, value});
    }
  }
  return out;
}

// Half and twice the best value of each option that helps.
ChangeSearch::Steps ChangeSearch::refining_steps() const {
  Steps out;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Tried* top = best(i);
    if (!choices_[i].number || top == nullptr || gain(top->outcome) < kWorthwhile) continue;
    for (const double factor : {kNear, 1 / kNear}) {
      if (const Json value = scaled(i, number_of(top->value), factor); !value.is_null()) out.push_back({i, value});
    }
  }
  return out;
}

const ChangeSearch::Tried* ChangeSearch::best(std::size_t index) const {
  const Tried* out = nullptr;
  for (const Tried& each : tried_[index]) {
    if (ran(each.outcome) && (out == nullptr || gain(each.outcome) > gain(out->outcome) * (1 + kEqualGain)))
      out = &each;
  }
  if (out == nullptr || !choices_[index].number) return out;
  const double now = number_of(choices_[index].now);
  const auto distance = [now](const Tried& each) { return std::abs(std::log(number_of(each.value) / now)); };
  for (const Tried& each : tried_[index]) {
    if (ran(each.outcome) && gain(each.outcome) >= gain(out->outcome) * (1 - kEqualGain) &&
        distance(each) < distance(*out))
      out = &each;
  }
  return out;
}

void ChangeSearch::run_singles(const Steps& steps) {
  Steps chosen;
  std::vector<Json> options;
  for (const Step& step : steps) {
    if (budget_.given && (budget_spent() || (budget_.runs > 0 && runs_ + options.size() >= budget_.runs))) {
      ++left_out_;
      continue;
    }
    chosen.push_back(step);
    options.push_back(Json{{choices_[step.index].option, step.value}});
  }
  if (options.empty()) return;
  const std::vector<TrialOutcome> outcomes = run_(options);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    tried_[chosen[i].index].push_back({chosen[i].value, outcomes[i]});
    if (!ran(outcomes[i])) continue;
    ++run_count_;
    ++runs_;
  }
}

void ChangeSearch::try_singles() {
  if (run_count_ > 0) return;
  run_singles(first_steps());
  run_singles(further_steps());
  for (int i = 0; i < kMaxRefinements; ++i) {
    const Steps steps = refining_steps();
    if (steps.empty()) return;
    run_singles(steps);
  }
}

ChangeSearch::Steps ChangeSearch::additions(const State& state) const {
  std::vector<std::pair<double, Step>> rated;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (std::ranges::any_of(state.steps, [i](const Step& step) { return step.index == i; })) continue;
    const Tried* top = best(i);
    // A non-numeric value that harms alone may help in combination, such as BlueFlame with a lock of its own. A numeric
    // value without a gain rarely does, except post lists and the options they depend on.
    const bool together = std::ranges::find(kCombinedOptions, choices_[i].option) != kCombinedOptions.end();
    const double least = !choices_[i].number ? 0 : together ? kMinHarmlessGain : kPromisingGain;
    if (top != nullptr && gain(top->outcome) >= least) rated.emplace_back(gain(top->outcome), Step{i, top->value});
  }
  std::ranges::stable_sort(rated, std::greater{}, [](const auto& each) { return each.first; });
  Steps out;
  for (auto& [_, step] : rated) out.push_back(std::move(step));
  return out;
}

std::vector<ChangeSearch::State> ChangeSearch::extended(const State& state, const Steps& steps) {
  std::vector<State> states;
  std::vector<Json> options;
  for (const Step& step : steps) {
    State next{state.steps, {}};
    next.steps.push_back(step);
    options.push_back(change_of(next).options);
    states.push_back(std::move(next));
  }
  if (options.empty()) return {};
  const std::vector<TrialOutcome> outcomes = run_(options);
  for (std::size_t i = 0; i < states.size(); ++i) {
    states[i].outcome = outcomes[i];
    if (ran(outcomes[i])) ++runs_;
  }
  std::erase_if(states, [](const State& each) { return !ran(each.outcome); });
  return states;
}

TriedChange ChangeSearch::change_of(const State& state) const {
  TriedChange out{.outcome = state.outcome};
  for (const Step& step : state.steps) {
    const OptionChoices& choices = choices_[step.index];
    out.options[choices.option] = step.value;
    out.text += (out.text.empty() ? "" : ", ") + change_text(choices, step.value);
  }
  return out;
}

// Adds the change with the largest gain until none adds kWorthwhile. Returns the state after each addition.
std::vector<ChangeSearch::State> ChangeSearch::climb(State state, std::size_t max_runs) {
  std::vector<State> out;
  while (runs_ < max_runs && !(budget_.time && budget_spent())) {
    Steps steps = additions(state);
    if (steps.size() > max_runs - runs_) steps.resize(max_runs - runs_);
    const std::vector<State> states = extended(state, steps);
    const auto best = std::ranges::max_element(states, {}, [this](const State& each) { return gain(each.outcome); });
    if (best == states.end() || gain(best->outcome) < kWorthwhile * gain(state.outcome)) break;
    state = *best;
    out.push_back(state);
  }
  return out;
}

std::vector<ChangeSearch::State> ChangeSearch::start_states() const {
  std::vector<State> out;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Tried* top = best(i);
    if (choices_[i].option == kPostList) {
      const Tried* list = tried(i, kUsualPostList);
      if (list != nullptr && ran(list->outcome) && gain(list->outcome) >= kMinHarmlessGain) top = list;
    } else if (choices_[i].option != kRegisters && (top == nullptr || gain(top->outcome) < kWorthwhile)) {
      continue;
    }
    if (top != nullptr && gain(top->outcome) >= kMinHarmlessGain) out.push_back({{{i, top->value}}, top->outcome});
  }
  // Keeps the state with the largest gain, and those of kPostList and kRegisters.
  std::ranges::stable_sort(out, std::greater{}, [this](const State& each) { return gain(each.outcome); });
  for (std::size_t i = out.size(); i-- > 1;) {
    const std::string& option = choices_[out[i].steps.front().index].option;
    if (option != kPostList && option != kRegisters) out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return out;
}

std::vector<TriedChange> ChangeSearch::find() {
  try_singles();
  std::vector<TriedChange> out;
  const auto add = [&](const State& state) {
    if (gain(state.outcome) < kWorthwhile) return;
    TriedChange change = change_of(state);
    if (std::ranges::find(out, change.options, &TriedChange::options) == out.end()) out.push_back(std::move(change));
  };
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (const Tried* top = best(i)) add({{{i, top->value}}, top->outcome});
  }
  const std::size_t max_runs = budget_.runs == 0 ? SIZE_MAX
                               : budget_.given   ? budget_.runs
                                                 : std::max(budget_.runs, runs_ + kMinCombinedRuns);
  for (const State& state : start_states()) std::ranges::for_each(climb(state, max_runs), add);
  // Drops a combination if a part of it gains as much.
  const auto part_does = [&](const TriedChange& whole) {
    return std::ranges::any_of(out, [&](const TriedChange& part) {
      const bool of_it = part.options.size() < whole.options.size() &&
                         std::ranges::all_of(part.options.items(), [&](const auto& each) {
                           return whole.options.contains(each.key()) && whole.options[each.key()] == each.value();
                         });
      return of_it && gain(whole.outcome) < kWorthwhile * gain(part.outcome);
    });
  };
  std::vector<TriedChange> own;
  std::ranges::copy_if(out, std::back_inserter(own), std::not_fn(part_does));
  out = std::move(own);
  std::ranges::stable_sort(out, std::greater{}, [this](const TriedChange& each) { return gain(each.outcome); });
  return out;
}

TriedChange ChangeSearch::reach(const Target& target) {
  const auto better = [&](const State& a, const State& b) {
    const double of_a = target.of(a.outcome), of_b = target.of(b.outcome);
    return target.unit == Target::Unit::us ? of_a < of_b : of_a > of_b;
  };
  State best{{}, base_};
  if (target.reached(base_)) return change_of(best);
  try_singles();
  std::vector<State> level;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    for (const Tried& each : tried_[i]) {
      if (ran(each.outcome)) level.push_back({{{i, each.value}}, each.outcome});
    }
  }
  for (std::size_t changes = 1;; ++changes) {
    std::ranges::stable_sort(level, better);
    if (!level.empty() && better(level.front(), best)) best = level.front();
    if (target.reached(best.outcome) || level.empty() || changes == kMaxChanges) return change_of(best);
    if (level.size() > kMaxStates) level.resize(kMaxStates);
    std::vector<State> next;
    for (const State& each : level) {
      for (State& state : extended(each, additions(each))) next.push_back(std::move(state));
    }
    level = std::move(next);
  }
}

}  // namespace verbscope
