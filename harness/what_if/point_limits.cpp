#include "harness/what_if/point_limits.hpp"

#include <algorithm>

#include "analysis/points.hpp"
#include "harness/what_if/point_again.hpp"
#include "harness/what_if/twice.hpp"

namespace verbscope {
namespace {

// False for a lock, cache line or atomic slot that was not used, and for a RECV queue that never lacked a RECV.
bool takes_part(const Record& record, const Diagnosis& diagnosis, Resource resource) {
  switch (resource) {
    case Resource::atomic_slot:
    case Resource::driver_lock:
    case Resource::shared_line: {
      const Load* load = find_load(diagnosis.loads.server, resource);
      return load != nullptr && load->utilisation > 0;
    }
    case Resource::recv_queue:
      return counted_in_all(record, "rnr_naks_sent") + counted_in_all(record, "dropped_no_recv") +
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
        point_(point_again(basis, runs.spec())),
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
      fail("no run with twice of a resource succeeded: {}", answer.failed.front());
    if (const auto gain = gain_of_recvs_behind(found, out)) found = {.limits = {Resource::recv_queue}, .gain = *gain};
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
  std::optional<double> gain_of_recvs_behind(const LimitSearch::Found& found, const Explanation& out) const {
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
      if (can && takes_part(basis_, diagnosis_, each) && std::ranges::find(out, each) == out.end()) out.push_back(each);
    };
    // Missing RECVs, which the adapter counts, are a more likely limit than a busy resource.
    add(Resource::recv_queue);
    for (const Limit& each : diagnosis_.candidates) add(capacity(each.load.resource));
    for (const Resource each :
         {Resource::outstanding, Resource::reads_outstanding, Resource::requester_unit, Resource::responder_unit,
          Resource::cpu, Resource::pcie_to_nic, Resource::wire_out, Resource::wqe_cache, Resource::wqe_fetch,
          Resource::qp_context_cache, Resource::translation_cache, Resource::dma_reads, Resource::atomic_slot,
          Resource::driver_lock, Resource::shared_line})
      add(each);
    return out;
  }

  // For a program that keeps one operation outstanding, making everything twice as fast doubles the rate like a second
  // operation.
  bool by_options(Resource resource) const {
    return !twice_by_options(basis_, resource).is_null() ||
           (resource == Resource::outstanding && keeps_one_outstanding(basis_));
  }

  std::vector<TrialOutcome> run(const std::vector<LimitSearch::Set>& sets) {
    std::vector<Trial> trials;
    for (const LimitSearch::Set& set : sets) {
      Trial trial{.point = point_};
      for (const Resource each : set) {
        const Json options = is_option(each) ? twice_by_options(basis_, each) : Json();
        if (!options.is_null()) trial.point = with_options(trial.point, options);
        if (!is_option(each)) trial.doubled.push_back(each);
        trial.twice_as_fast |= each == Resource::outstanding && options.is_null();
      }
      trials.push_back(std::move(trial));
    }
    return runs_.run(trials);
  }

  Limit limit(Resource resource, const Explanation& out) const {
    Limit limit = fullest_limit(diagnosis_, resource);
    limit.gain = out.gain_of(resource).value_or(1);
    const Json options = is_option(resource) ? twice_by_options(basis_, resource) : Json();
    if (options.is_object() && !options.empty()) {
      limit.option = options.contains("window") ? "window" : options.begin().key();
      limit.value = number_at(basis_.config, limit.option).value_or(0);
      limit.load.resource = resource;
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

void find_limits(const Record& basis, SimulatedRuns& runs, Explanation& out) {
  PointLimits(basis, runs).fill(out);
}

}  // namespace verbscope
