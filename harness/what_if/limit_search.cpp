#include "harness/what_if/limit_search.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace verbscope {
namespace {

// Queues that are shorter everywhere bring as much as this without being the limit.
constexpr double kNothing = 0.05;
// Another one that brings so much of what the best brings is near it.
constexpr double kNear = 0.5;
// A limit that brings as much as this is not asked for a second that alone brings nothing.
constexpr double kClear = 1.3;
// Two must bring so many times as much as one of them to be told together.
constexpr double kTogether = 1.1;
// Gains that differ by no more are the same: the likelier resource is named.
constexpr double kSame = 0.01;
// Those that are tried singly before the others are tried in groups, and with which pairs are made.
constexpr std::size_t kLikely = 2, kPartners = 4;

}  // namespace

LimitSearch::LimitSearch(std::vector<Resource> resources, std::vector<Resource> apart, double base_mops, RunTrials run)
    : resources_(std::move(resources)), apart_(std::move(apart)), base_mops_(base_mops), run_(std::move(run)) {}

void LimitSearch::run(const Sets& sets) {
  std::vector<Trial> trials;
  for (const Set& set : sets) {
    const Trial trial{.doubled = set};
    if (!gains_.contains(set) && std::ranges::find(trials, trial) == trials.end()) trials.push_back(trial);
  }
  if (trials.empty()) return;
  const std::vector<TrialOutcome> outcomes = run_(trials);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const Set& set = trials[i].doubled;
    const bool failed = !outcomes[i].failure.empty();
    gains_[set] = failed ? std::nullopt : std::optional(outcomes[i].mops / base_mops_);
    std::vector<std::string_view> words;
    for (const Resource each : set) words.push_back(words_for(each));
    if (failed) {
      failed_.push_back(fmt::format("twice of {}: {}", fmt::join(words, " and "), outcomes[i].failure));
    } else {
      tried_.push_back({set, *gains_[set]});
    }
  }
}

std::optional<double> LimitSearch::gain(const Set& set) const {
  const auto found = gains_.find(set);
  return found == gains_.end() ? std::nullopt : found->second;
}

std::optional<GainOfTwice> LimitSearch::best() const {
  std::optional<GainOfTwice> out;
  for (const Resource each : resources_) {
    const std::optional<double> brings = gain(each);
    if (brings && (!out || *brings > out->gain + kSame)) out = GainOfTwice{each, *brings};
  }
  return out;
}

double LimitSearch::counts() const {
  const std::optional<GainOfTwice> most = best();
  return 1 + std::max(kNothing, most ? (most->gain - 1) * kNear : 0);
}

// Likely ones singly, all others at once: when these bring nothing together, none of them does alone.
void LimitSearch::try_singles() {
  Sets first;
  Set others;
  std::size_t likely = 0;
  for (const Resource each : resources_) {
    const bool apart = std::ranges::find(apart_, each) != apart_.end();
    if (apart || likely++ < kLikely) {
      first.push_back({each});
    } else {
      others.push_back(each);
    }
  }
  if (!others.empty()) first.push_back(others);
  run(first);
  if (!others.empty()) try_groups({others});
}

// Halves of a group that brings enough, until those are single that do. A group that cannot be run tells nothing.
void LimitSearch::try_groups(Sets groups) {
  while (!groups.empty()) {
    Sets halves;
    for (const Set& group : groups) {
      const std::optional<double> brings = gain(group);
      if (group.size() < 2 || (brings && *brings <= counts())) continue;
      const auto middle = group.begin() + static_cast<std::ptrdiff_t>((group.size() + 1) / 2);
      halves.emplace_back(group.begin(), middle);
      halves.emplace_back(middle, group.end());
    }
    run(halves);
    groups = std::move(halves);
  }
}

std::vector<Resource> LimitSearch::near(Resource first) const {
  std::vector<Resource> out;
  const auto brings = [this](Resource each) { return gain(each).value_or(0); };
  for (const Resource each : resources_) {
    if (each != first && brings(each) > counts()) out.push_back(each);
  }
  std::ranges::stable_sort(out, std::greater{}, brings);
  return out;
}

// The first with each of the others, in the order of all resources.
LimitSearch::Sets LimitSearch::pairs_with(Resource first, const std::vector<Resource>& partners) const {
  const auto is_apart = [this](Resource each) { return std::ranges::find(apart_, each) != apart_.end(); };
  Sets out;
  for (const Resource each : partners) {
    if (each == first || is_apart(each) || is_apart(first) || out.size() + 1 == kPartners) continue;
    const bool earlier = std::ranges::find(resources_, each) < std::ranges::find(resources_, first);
    out.push_back(earlier ? Set{each, first} : Set{first, each});
  }
  return out;
}

// The pair that brings most, each of it by itself as well.
std::optional<LimitSearch::Found> LimitSearch::best_pair(const Sets& pairs) {
  run(pairs);
  const Set* most = nullptr;
  for (const Set& pair : pairs) {
    if (gain(pair) && (most == nullptr || *gain(pair) > *gain(*most) + kSame)) most = &pair;
  }
  if (most == nullptr) return std::nullopt;
  run({Set{most->front()}, Set{most->back()}});
  Found out{.first = GainOfTwice{most->front(), gain(most->front()).value_or(1)},
            .second = GainOfTwice{most->back(), gain(most->back()).value_or(1)},
            .gain_of_all = *gain(*most)};
  if (out.second->gain > out.first->gain) std::swap(out.first, out.second);
  return out;
}

LimitSearch::Found LimitSearch::find() {
  try_singles();
  const std::optional<GainOfTwice> first = best();
  if (!first) return {};
  const Found alone{.first = first, .second = {}, .gain_of_all = first->gain};
  const std::vector<Resource> beside = near(first->resource);
  if (!beside.empty()) return best_pair(pairs_with(first->resource, beside)).value_or(alone);
  if (first->gain >= kClear) return alone;
  Sets pairs = pairs_with(first->resource, resources_);
  if (first->gain <= 1 + kNothing) {  // it is no better than others
    const auto count = static_cast<std::ptrdiff_t>(std::min(kPartners, resources_.size()));
    const Set likely(resources_.begin(), resources_.begin() + count);
    for (const Resource each : likely) {
      for (Set& pair : pairs_with(each, likely)) pairs.push_back(std::move(pair));
    }
  }
  const std::optional<Found> two = best_pair(pairs);
  if (two && two->gain_of_all > kTogether * first->gain) return *two;
  if (first->gain <= 1 + kNothing / 2) return {};
  return alone;
}

}  // namespace verbscope
