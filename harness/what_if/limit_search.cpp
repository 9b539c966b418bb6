#include "harness/what_if/limit_search.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "analysis/points.hpp"
#include "harness/what_if/point_options.hpp"
#include "harness/what_if/simulated_runs.hpp"

namespace verbscope {
namespace {

// Gains within this difference count as equal; the more likely resource is reported.
constexpr double kSame = 0.005;
// Number of likely resources that are tried alone before the others run as one group, and number of which pairs are
// made.
constexpr std::size_t kLikely = 2, kPartners = 4;

// False for a lock, cache line, atomic slot or memory that was not used, and for a RECV queue that never lacked a RECV.
bool is_used(const Record& record, const Diagnosis& diagnosis, Resource resource) {
  switch (resource) {
    case Resource::atomic_slot:
    case Resource::driver_lock:
    case Resource::shared_line: {
      const Load* load = find_load(diagnosis.loads.server, resource);
      return load != nullptr && load->utilisation > 0;
    }
    case Resource::dram: {
      const Load* cpu = find_load(diagnosis.loads.server, Resource::cpu);
      return cpu != nullptr && cpu->memory > 0;
    }
    case Resource::recv_queue:
      return is_rpc(record) || counted_in_all(record, "rnr_naks_sent") + counted_in_all(record, "dropped_no_recv") +
                                       counted_in_all(record, "recv_waits") >
                                   0;
    case Resource::reads_outstanding:
      return counted_in_all(record, "reads_served") + counted_in_all(record, "atomics_served") > 0;
    default:
      return true;
  }
}

class PointLimits {
 public:
  PointLimits(const Record& basis, SimulatedRuns& runs)
      : basis_(basis),
        runs_(runs),
        point_(effective_point(basis, runs.spec())),
        base_mops_(number_at(basis.result, "rate_mops").value_or(0)) {
    const std::optional<Prediction> prediction = prediction_of(basis);
    diagnosis_ = diagnose(resource_loads(basis, prediction ? &*prediction : nullptr));
  }

  void fill(Explanation& out) {
    const bool one_at_a_time = keeps_one_outstanding(basis_);
    LimitSearch search(resources(), one_at_a_time ? std::vector{Resource::outstanding} : std::vector<Resource>{},
                       base_mops_, [this](const std::vector<LimitSearch::Set>& sets) { return run(sets); });
    LimitSearch::Found found = search.find();
    SimulatedAnswer& answer = *out.runs;
    answer.tried = search.tried();
    answer.failed = search.failed();
    if (answer.tried.empty() && !answer.failed.empty())
      fail("no run with a doubled resource succeeded: {}", answer.failed.front());
    if (const auto gain = recv_queue_gain(found, out)) found = {.limits = {Resource::recv_queue}, .gain = *gain};
    out.limits.clear();
    out.gain_of_all = found.gain;
    for (const Resource each : found.limits) out.limits.push_back(limit(each, out));
    for (const Resource each : resources()) {
      const bool named = std::ranges::find(found.limits, each) != found.limits.end();
      if (is_option(each) && !named && out.gain_of(each).value_or(1) >= kWorthwhile)
        out.limiting_options.push_back(limit(each, out));
    }
    answer.assumed = assumed_parameters(runs_.profile(), found.limits);
    out.undecided = found.limits.empty()
                        ? "doubling each resource, and the likeliest together, raises the rate by less than 3 %"
                        : "";
  }

 private:
  // A rate that is held down by RNR NAK timers can rise when anything becomes twice as fast. If the resource found is
  // hardly used, it is not the limit; the RECVs are, if doubling them helps.
  std::optional<double> recv_queue_gain(const LimitSearch::Found& found, const Explanation& out) const {
    constexpr double kHardlyUsed = 0.5;
    const std::optional<double> gain = out.gain_of(Resource::recv_queue);
    if (found.limits.size() != 1 || is_option(found.limits[0]) || gain.value_or(1) < kWorthwhile) return std::nullopt;
    return fullest_limit(diagnosis_, found.limits[0]).load.utilisation < kHardlyUsed ? gain : std::nullopt;
  }

  // The resources that the closed-form model considers, in its order, then the others.
  std::vector<Resource> resources() const {
    std::vector<Resource> out;
    const auto add = [&](Resource each) {
      const bool can = is_option(each) ? by_options(each) : can_double(runs_.profile(), each);
      if (can && is_used(basis_, diagnosis_, each) && std::ranges::find(out, each) == out.end()) out.push_back(each);
    };
    // Missing RECVs, which the adapter counts, are a more likely limit than a busy resource.
    add(Resource::recv_queue);
    for (const Limit& each : diagnosis_.candidates) add(capacity(each.load.resource));
    for (const Resource each : {Resource::outstanding,
                                Resource::reads_outstanding,
                                Resource::requester_unit,
                                Resource::responder_unit,
                                Resource::cpu,
                                Resource::dram,
                                Resource::workers,
                                Resource::pcie_to_nic,
                                Resource::wire_out,
                                Resource::wqe_cache,
                                Resource::wqe_fetch,
                                Resource::qp_context_cache,
                                Resource::translation_cache,
                                Resource::dma_reads,
                                Resource::atomic_slot,
                                Resource::driver_lock,
                                Resource::shared_line,
                                Resource::credits,
                                Resource::rate_limiter,
                                Resource::timeouts})
      add(each);
    return out;
  }

  // For a program that keeps one operation outstanding, making everything twice as fast doubles the rate like a second
  // operation.
  bool by_options(Resource resource) const {
    return !doubling_options(basis_, resource).is_null() ||
           (resource == Resource::outstanding && keeps_one_outstanding(basis_));
  }

  std::vector<TrialOutcome> run(const std::vector<LimitSearch::Set>& sets) {
    std::vector<Trial> trials;
    for (const LimitSearch::Set& set : sets) {
      Trial trial{.point = point_};
      for (const Resource each : set) {
        const Json options = is_option(each) ? doubling_options(basis_, each) : Json();
        if (!options.is_null()) trial.point = with_options(trial.point, options);
        if (!is_option(each)) trial.doubled.push_back(each);
        trial.double_speed |= each == Resource::outstanding && options.is_null();
      }
      trials.push_back(std::move(trial));
    }
    return runs_.run(trials);
  }

  Limit limit(Resource resource, const Explanation& out) const {
    Limit limit = fullest_limit(diagnosis_, resource);
    limit.gain = out.gain_of(resource).value_or(1);
    const Json options = is_option(resource) ? doubling_options(basis_, resource) : Json();
    if (options.is_object() && !options.empty()) {
      limit.load.resource = resource;
      const std::string option = options.contains("window") ? "window" : options.begin().key();
      if (const auto value = number_at(basis_.config, option)) {
        limit.option = option;
        limit.value = *value;
      }
    }
    return limit;
  }

  const Record& basis_;
  SimulatedRuns& runs_;
  Point point_;
  double base_mops_;
  Diagnosis diagnosis_;
};

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
    failed_.push_back(fmt::format("doubled {}: {}", fmt::join(words, " and "), outcome.failure));
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

void find_limits(const Record& basis, SimulatedRuns& runs, Explanation& out) {
  PointLimits(basis, runs).fill(out);
}

}  // namespace verbscope
