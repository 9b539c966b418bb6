#include "harness/what_if/what_if.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "analysis/explain.hpp"
#include "analysis/points.hpp"
#include "common/paths.hpp"
#include "common/record.hpp"
#include "harness/sweep/benchmarks.hpp"
#include "harness/sweep/progress.hpp"
#include "harness/what_if/limit_search.hpp"
#include "harness/what_if/point_options.hpp"
#include "harness/what_if/simulated_runs.hpp"

namespace verbscope {
namespace {

using Clock = std::chrono::steady_clock;

// Largest accepted relative difference between a simulated point and its record.
constexpr double kAcceptedDifference = 0.25;
// Typical number of runs per point, and the expected total time above which a message announces it.
constexpr double kUsualRuns = 70;
constexpr std::chrono::seconds kNoticeAbove{10};

// The simulated cluster of the record, as a value for --fabric sim:.
std::string cluster_of(const Record& record, const std::string& named) {
  const auto fabric = record.environment.value("fabric", "");
  if (is_simulated(fabric)) return fabric.substr(kSimulatedPrefix.size());
  if (fabric != "verbs") fail("there is no simulated cluster for fabric {}", dump_json(fabric));
  if (named.empty()) fail("no simulated cluster is known for this hardware; give one with --cluster");
  return named;
}

class Explainer {
 public:
  Explainer(const Record& record, const WhatIfOptions& options, RunCache& cache)
      : record_(record), options_(options), cache_(cache), out_(explain(record)) {}

  Explanation explanation() {
    const Explanation closed = out_;
    try {
      out_.runs.emplace();
      out_.runs->cluster = cluster_of(record_, options_.cluster);
      run();
    } catch (const InterruptedError&) {
      throw;
    } catch (const Error& error) {
      out_ = closed;
      out_.not_run = error.what();
      if (options_.target) out_.not_run += "; a target needs simulated runs";
    }
    return std::move(out_);
  }

 private:
  void run() {
    if (record_.benchmark == "simulate") {
      fail("programs of `verbscope simulate` are not run again; points of the benchmark \"perftest\" are");
    }
    const Json profile = read_json_file(find_config("clusters", out_.runs->cluster));
    const std::filesystem::path binary = benchmark_binary(options_.folder, record_.benchmark);
    SimulatedRuns runs(
        profile, {.binary = binary, .spec = describe_benchmark(binary), .jobs = options_.jobs, .stop = options_.stop},
        cache_);
    const Clock::time_point begin = Clock::now();
    const auto seconds = [&begin] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
    const Record base = runs.record(effective_point(record_, runs.spec()));
    require_similar_rate(base);
    announce_duration(seconds());
    find_limits(base, runs, out_);
    try_changes(base, runs);
    out_.runs->runs = runs.count();
    out_.runs->seconds = seconds();
  }

  void require_similar_rate(const Record& base) {
    const std::string& cluster = out_.runs->cluster;
    if (base.status == RecordStatus::failed) fail("the point failed on {}: {}", cluster, base.reason);
    const double simulated = number_at(base.result, "rate_mops").value_or(0);
    const double measured = number_at(record_.result, "rate_mops").value_or(0);
    if (!(simulated > 0) || !(measured > 0)) fail("the point has no rate");
    out_.runs->base_mops = simulated;
    if (std::abs(simulated / measured - 1) > kAcceptedDifference)
      fail("on {} the simulated rate, {:.4g} Mops, differs by {:+.0f} % from the record; at most {:.0f} % is accepted",
           cluster, simulated, (simulated / measured - 1) * 100, kAcceptedDifference * 100);
  }

  void announce_duration(double one_run) const {
    const double jobs = static_cast<double>(std::max<std::size_t>(1, options_.jobs));
    const double count =
        options_.budget.given && options_.budget.runs > 0 ? static_cast<double>(options_.budget.runs) : kUsualRuns;
    const std::chrono::duration<double> all(one_run * count / jobs);
    if (!options_.notify || all <= kNoticeAbove || options_.budget.time) return;
    options_.notify(
        fmt::format("point {}: about {:.0f} runs on simulated copies of {} take about {}; --budget 10s limits them, "
                    "--closed_form avoids them",
                    point_id(record_), count, out_.runs->cluster, duration_text(all)));
  }

  void try_changes(const Record& base, SimulatedRuns& runs) {
    const Point point = point_as_given(record_, runs.spec());
    const auto run_changed = [&](const std::vector<Json>& changes) {
      std::vector<Trial> trials;
      for (const Json& each : changes) trials.push_back({.point = with_options(point, each)});
      return runs.run(trials);
    };
    const TrialOutcome as_it_is = runs.run({{.point = point}}).front();
    if (!as_it_is.failure.empty()) fail("the point as it was given failed: {}", as_it_is.failure);
    ChangeSearch search(option_choices(base, runs.spec(), runs.profile(), out_.limits), as_it_is, options_.budget,
                        run_changed);
    out_.advice.clear();
    const auto add = [&](const TriedChange& change, bool other_payload) {
      const double factor = change.outcome.mops / as_it_is.mops;
      out_.advice.push_back({.change = change.text,
                             .factor = factor,
                             .options = change.options,
                             .by_run = true,
                             .other_payload = other_payload,
                             .command = command_of(with_options(point, change.options))});
    };
    for (const TriedChange& each : search.find()) add(each, false);
    for (const TriedChange& each : other_payloads(base, run_changed)) {
      if (each.outcome.failure.empty() && each.outcome.mops >= kWorthwhile * as_it_is.mops) add(each, true);
    }
    std::ranges::stable_sort(out_.advice, std::greater{}, &Advice::factor);
    if (options_.target) out_.runs->target = reach(*options_.target, search, as_it_is, point, runs);
    out_.runs->neighbours = search.neighbours();
    out_.runs->neighbours_run = search.neighbours_run();
  }

  // Runs the same operation with a shorter payload: in an immediate, or in a WQE that is one line shorter.
  static std::vector<TriedChange> other_payloads(const Record& base, const ChangeSearch::RunChanged& run_changed) {
    const std::optional<Prediction> prediction = prediction_of(base);
    if (!prediction) return {};
    std::vector<TriedChange> out;
    std::vector<Json> options;
    for (const ShapeChange& each : shape_changes(*prediction, 1)) {
      if (each.after.shape.payload == prediction->shape.payload) continue;
      if (static_cast<double>(prediction->shape.payload.value) <= kImmediateBytes)
        continue;  // already covered by the option changes
      out.push_back({.options = each.options, .text = each.text});
      options.push_back(each.options);
    }
    if (options.empty()) return {};
    const std::vector<TrialOutcome> outcomes = run_changed(options);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].outcome = outcomes[i];
    return out;
  }

  // Commands name the record's fabric: the profile copies are deleted at the end.
  std::string command_of(const Point& point) const {
    return command_text(point, record_.environment.value("fabric", ""));
  }

  TargetAnswer reach(const Target& target, ChangeSearch& search, const TrialOutcome& as_it_is, const Point& point,
                     SimulatedRuns& runs) const {
    if (target.of(as_it_is) <= 0)
      fail_usage("--target {}: {} reports no such result", target.text(), record_.benchmark);
    const TriedChange found = search.reach(target);
    const Point changed = with_options(point, found.options);
    TargetAnswer out{.asked = target.text(),
                     .reached = target.reached(found.outcome),
                     .value = target.of(found.outcome),
                     .change = {.change = found.text,
                                .factor = found.outcome.mops / as_it_is.mops,
                                .options = found.options,
                                .by_run = true,
                                .command = command_of(changed)}};
    if (out.reached) return out;
    const Record best = runs.record(changed);
    Explanation there = explain(best);
    there.runs.emplace();
    find_limits(best, runs, there);
    out.in_the_way = there.limits.empty() ? there.undecided : there.limit_words();
    return out;
  }

  const Record& record_;
  const WhatIfOptions& options_;
  RunCache& cache_;
  Explanation out_;
};

}  // namespace

Explanation explain_by_runs(const Record& record, const WhatIfOptions& options, RunCache& cache) {
  return Explainer(record, options, cache).explanation();
}

}  // namespace verbscope
