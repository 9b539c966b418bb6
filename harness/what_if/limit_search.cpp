#include "harness/what_if/limit_search.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace verbscope {
namespace {

// Gains within this difference count as equal; the more likely resource is reported.
constexpr double kSame = 0.005;
// Number of likely resources that are tried alone before the others run as one group, and number of which pairs are
// made.
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

// 0 for sets whose run failed.
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

// Runs likely resources alone and all others as one group. If the group gains no more, none of its members does alone.
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

// Halves each group that gains more than the best single resource, down to single resources. A group whose run failed
// is halved too.
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

// Returns the best pair of the likeliest resources. If no pair suffices, doubles all together and removes each resource
// that is not needed.
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
