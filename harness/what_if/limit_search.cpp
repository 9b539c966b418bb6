#include "harness/what_if/limit_search.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace verbscope {
namespace {

// Gains that differ by no more are the same: the likelier resource is named.
constexpr double kSame = 0.005;
// Those that are tried singly before the others are tried as a group, and of which pairs are made.
constexpr std::size_t kLikely = 2, kPartners = 4;

}  // namespace

LimitSearch::LimitSearch(Set resources, Set apart, double base_mops, RunDoubled run)
    : resources_(std::move(resources)), apart_(std::move(apart)), base_mops_(base_mops), run_(std::move(run)) {}

void LimitSearch::run(const Sets& sets) {
  Sets fresh;
  for (const Set& set : sets) {
    if (!set.empty() && !gains_.contains(set) && std::ranges::find(fresh, set) == fresh.end()) fresh.push_back(set);
  }
  if (fresh.empty()) return;
  const std::vector<TrialOutcome> outcomes = run_(fresh);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const TrialOutcome& outcome = outcomes[i];
    gains_[fresh[i]] = outcome.failure.empty() ? std::optional(outcome.mops / base_mops_) : std::nullopt;
    if (outcome.failure.empty()) {
      tried_.push_back({fresh[i], outcome.mops / base_mops_});
      continue;
    }
    std::vector<std::string_view> words;
    for (const Resource each : fresh[i]) words.push_back(words_for(each));
    failed_.push_back(fmt::format("twice of {}: {}", fmt::join(words, " and "), outcome.failure));
  }
}

// What did not run brings nothing that is known.
double LimitSearch::gain(const Set& set) const {
  const auto found = gains_.find(set);
  return found == gains_.end() ? 0 : found->second.value_or(0);
}

bool LimitSearch::is_apart(Resource resource) const {
  return std::ranges::find(apart_, resource) != apart_.end();
}

const LimitSearch::Set* LimitSearch::best_of(const Sets& sets) const {
  const Set* best = nullptr;
  for (const Set& each : sets) {
    if (gain(each) > 0 && (best == nullptr || gain(each) > gain(*best) + kSame)) best = &each;
  }
  return best;
}

LimitSearch::Sets LimitSearch::singles() const {
  Sets out;
  for (const Resource each : resources_) out.push_back({each});
  return out;
}

// Likely ones singly, all others at once: when these bring no more together, none of them does alone.
void LimitSearch::try_singles() {
  Sets first;
  Set others;
  std::size_t likely = 0;
  for (const Resource each : resources_) {
    if (is_apart(each) || is_option(each) || likely++ < kLikely) {
      first.push_back({each});
    } else {
      others.push_back(each);
    }
  }
  first.push_back(others);
  run(first);
  split(std::move(others));
}

// Halves of a group that brings more than the best single one, until those are single that do. A group that cannot be
// run says nothing: it is halved too.
void LimitSearch::split(Set group) {
  Sets groups{std::move(group)};
  while (!groups.empty()) {
    const Sets alone = singles();
    const Set* best = best_of(alone);
    const double beaten = std::max(kWorthwhile, best == nullptr ? 0 : gain(*best) + kSame);
    Sets halves;
    for (const Set& each : groups) {
      const bool ran = gains_.contains(each) && gains_.at(each).has_value();
      if (each.size() < 2 || (ran && gain(each) < beaten)) continue;
      const auto middle = each.begin() + static_cast<std::ptrdiff_t>((each.size() + 1) / 2);
      halves.emplace_back(each.begin(), middle);
      halves.emplace_back(middle, each.end());
    }
    run(halves);
    groups = std::move(halves);
  }
}

// The best pair of the likeliest; else what is left of all together when each that is not needed is taken out.
LimitSearch::Found LimitSearch::find_pair() {
  Set together;
  for (const Resource each : resources_) {
    if (!is_apart(each) && !(gains_.contains({each}) && !gains_.at({each}))) together.push_back(each);
  }
  if (together.size() < 2) return {};
  run({together});
  if (gain(together) < kWorthwhile) return {};
  Sets pairs;
  for (std::size_t a = 0; a < std::min(kPartners, together.size()); ++a) {
    for (std::size_t b = a + 1; b < std::min(kPartners, together.size()); ++b)
      pairs.push_back({together[a], together[b]});
  }
  run(pairs);
  const Set* best = best_of(pairs);
  Set limits = best != nullptr && gain(*best) >= kWorthwhile ? *best : together;
  for (std::size_t i = limits.size(); i-- > 0 && limits.size() > 2;) {
    Set without = limits;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    run({without});
    if (gain(without) >= kWorthwhile) limits = std::move(without);
  }
  Sets alone;
  for (const Resource each : limits) alone.push_back({each});
  run(alone);
  return {.limits = limits, .gain = gain(limits)};
}

LimitSearch::Found LimitSearch::find() {
  try_singles();
  const Sets alone = singles();
  const Set* best = best_of(alone);
  if (best != nullptr && gain(*best) >= kWorthwhile) return {.limits = *best, .gain = gain(*best)};
  return find_pair();
}

}  // namespace verbscope
