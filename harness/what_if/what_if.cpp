#include "harness/what_if/what_if.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "analysis/explain.hpp"
#include "analysis/points.hpp"
#include "common/environment.hpp"
#include "common/paths.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/progress.hpp"
#include "harness/what_if/simulated_runs.hpp"
#include "harness/what_if/twice.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

// A simulated point that is further from the measured one than this is another point.
constexpr double kAlike = 0.25;
// A point is run about so many times; when that takes longer than a person waits without a word, it is told.
constexpr double kUsualRuns = 9;
constexpr std::chrono::seconds kUntold{10};
// Windows are halved so often where WQEs are read again.
constexpr int kSmallerWindows = 3;
// The most changes of options that are tried: the best by the closed form.
constexpr std::size_t kMostAdvice = 8;

// The simulated cluster of the record, as --fabric sim: has it.
std::string cluster_of(const Record& record, const std::string& named) {
  const auto fabric = record.environment.value("fabric", "");
  if (fabric.starts_with("sim:")) return fabric.substr(4);
  if (fabric != "verbs") fail("there is no simulated cluster for fabric {}", dump_json(fabric));
  if (named.empty()) fail("the simulated cluster that is like the measured one is not known: --cluster names it");
  return named;
}

// All capacities that may limit the point: those that the closed form weighs, in its order, then the others. A lock, a
// line or a slot is none that nobody used.
std::vector<Resource> resources_of(const Diagnosis& diagnosis, const Json& profile) {
  std::vector<Resource> out;
  const auto add = [&](Resource each) {
    const bool options = each == Resource::outstanding;
    if ((options || can_double(profile, each)) && std::ranges::find(out, each) == out.end()) out.push_back(each);
  };
  for (const Limit& each : diagnosis.candidates) add(capacity(each.load.resource));
  const auto used = [&diagnosis](Resource each) {
    const Load* load = find_load(diagnosis.loads.server, each);
    return load != nullptr && load->utilisation > 0;
  };
  for (const Resource each : {Resource::outstanding, Resource::requester_unit, Resource::responder_unit, Resource::cpu,
                              Resource::pcie_to_nic, Resource::wire_out, Resource::wqe_cache, Resource::wqe_fetch,
                              Resource::qp_context_cache, Resource::translation_cache, Resource::dma_reads})
    add(each);
  for (const Resource each : {Resource::atomic_slot, Resource::driver_lock, Resource::shared_line}) {
    if (used(each)) add(each);
  }
  return out;
}

// The changes to try: what the closed form advises against the limits that were found and against those that it sees
// itself, and smaller windows where WQEs are read again. Each set of options once.
std::vector<Advice> changes_to_try(const Record& basis, const Diagnosis& closed, const Diagnosis& found) {
  const std::optional<Prediction> prediction = prediction_of(basis);
  std::vector<Advice> out;
  const auto add = [&out](const Advice& each) {
    const auto same = [&each](const Advice& other) {
      return each.options.empty() ? other.change == each.change : other.options == each.options;
    };
    if (std::ranges::none_of(out, same)) out.push_back(each);
  };
  for (const Diagnosis* each : {&found, &closed}) std::ranges::for_each(advise(basis, prediction, *each), add);
  std::ranges::stable_sort(out, std::greater{}, &Advice::factor);
  if (out.size() > kMostAdvice) out.resize(kMostAdvice);
  if (found.loads.wqes_reread <= kRereadCounts) return out;
  const std::string option = outstanding_option(basis);
  const double now = number_at(basis.config, option).value_or(0);
  const double least = number_at(basis.config, "post_list").value_or(1);
  for (int i = 1; i <= kSmallerWindows && now / std::exp2(i) >= least; ++i)
    add(fewer_outstanding(option, now, std::floor(now / std::exp2(i))));
  return out;
}

bool is_fewer_outstanding(const Advice& advice, const Record& basis) {
  const std::string option = outstanding_option(basis);
  return number_at(advice.options, option).value_or(INFINITY) < number_at(basis.config, option).value_or(0);
}

class Explainer {
 public:
  Explainer(const Record& record, const WhatIfOptions& options) : record_(record), options_(options) {}

  WhatIf all() {
    try {
      out_.cluster = cluster_of(record_, options_.cluster);
      run();
    } catch (const InterruptedError&) {
      throw;
    } catch (const Error& error) {
      out_.not_run = error.what();
    }
    return std::move(out_);
  }

 private:
  void run() {
    const Json profile = read_json_file(find_config("clusters", out_.cluster));
    const std::filesystem::path binary = benchmark_binary(options_.folder, record_.benchmark);
    SimulatedRuns runs(
        record_, profile,
        {.binary = binary, .spec = describe_benchmark(binary), .jobs = options_.jobs, .stop = options_.stop});
    const Clock::time_point begin = Clock::now();
    const auto note = [&] {
      out_.runs = runs.count();
      out_.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    };
    const Record base = runs.base();
    note();
    require_alike(base);
    tell_time();
    const RunTrials run_trials = [&runs](const std::vector<Trial>& trials) { return runs.run(trials); };
    // The busy times of hardware are not known: those of its simulated copy are.
    const Record& basis = record_.environment.value("simulated", false) ? record_ : base;
    out_.diagnosis = explain(basis).diagnosis;
    const Diagnosis closed = out_.diagnosis;
    find_limits(profile, run_trials);
    if (out_.not_run.empty()) try_changes(basis, closed, run_trials);
    note();
  }

  void require_alike(const Record& base) {
    if (base.status == RecordStatus::failed) fail("the point failed on {}: {}", out_.cluster, base.reason);
    out_.base_mops = number_at(base.result, "rate_mops").value_or(0);
    const double measured = number_at(record_.result, "rate_mops").value_or(0);
    if (!(out_.base_mops > 0) || !(measured > 0)) fail("the point has no rate");
    if (std::abs(out_.base_mops / measured - 1) > kAlike)
      fail("the simulated rate is {:+.0f} % off, more than the {:.0f} % at which a copy still tells something",
           (out_.base_mops / measured - 1) * 100, kAlike * 100);
  }

  void tell_time() const {
    const double jobs = static_cast<double>(std::max<std::size_t>(1, options_.jobs));
    const std::chrono::duration<double> all(out_.seconds * kUsualRuns / jobs);
    if (!options_.told || all <= kUntold) return;
    options_.told(
        fmt::format("point {}: some {:.0f} runs on simulated copies of {} take about {}; --closed_form does without",
                    point_id(record_), kUsualRuns, out_.cluster, duration_text(all)));
  }

  void find_limits(const Json& profile, const RunTrials& run_trials) {
    std::vector<Resource> apart;
    if (keeps_one_under_way(record_)) apart.push_back(Resource::outstanding);
    LimitSearch search(resources_of(out_.diagnosis, profile), apart, out_.base_mops, run_trials);
    const LimitSearch::Found found = search.find();
    out_.tried = search.tried();
    out_.failed = search.failed();
    if (found.first) return name_limits(out_.diagnosis, *found.first, found.second, found.gain_of_all);
    if (out_.tried.empty()) fail("no run with twice of a resource succeeded: {}", out_.failed.front());
    out_.diagnosis.binding.reset();
    out_.diagnosis.second.reset();
    out_.diagnosis.next.reset();
    out_.diagnosis.undecided =
        "in simulated runs twice of no resource, nor of the likeliest two together, raises the rate";
  }

  void try_changes(const Record& basis, const Diagnosis& closed, const RunTrials& run_trials) {
    const std::vector<Advice> changes = changes_to_try(basis, closed, out_.diagnosis);
    std::vector<Trial> trials;
    for (const Advice& each : changes) {
      if (!each.options.empty()) trials.push_back({.options = each.options});
    }
    const std::vector<TrialOutcome> outcomes = run_trials(trials);
    auto outcome = outcomes.begin();
    for (Advice each : changes) {
      if (!each.options.empty()) {
        const TrialOutcome& came = *outcome++;
        if (!came.failure.empty()) {
          out_.failed.push_back(each.change + ": " + came.failure);
          continue;
        }
        each.factor = came.mops / out_.base_mops;
        each.then = came.limit;
        each.at_least = false;
        each.by_run = true;
      }
      if (each.factor >= kWorthwhile) out_.advice.push_back(std::move(each));
    }
    std::ranges::stable_sort(out_.advice, std::greater{}, &Advice::factor);
    keep_best_window(basis);
  }

  // Of windows that keep WQEs in their cache only the best is told.
  void keep_best_window(const Record& basis) {
    const auto is_fewer = [&basis](const Advice& each) { return is_fewer_outstanding(each, basis); };
    const auto best = std::ranges::find_if(out_.advice, is_fewer);
    if (best == out_.advice.end()) return;
    out_.advice.erase(std::remove_if(best + 1, out_.advice.end(), is_fewer), out_.advice.end());
  }

  const Record& record_;
  const WhatIfOptions& options_;
  WhatIf out_;
};

}  // namespace

WhatIf what_if(const Record& record, const WhatIfOptions& options) {
  return Explainer(record, options).all();
}

}  // namespace verbscope
