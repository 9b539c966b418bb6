#include "harness/what_if/simulated_runs.hpp"

#include <algorithm>

#include "analysis/explain.hpp"
#include "analysis/points.hpp"
#include "common/output_file.hpp"
#include "harness/point/point_runner.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/what_if/point_again.hpp"
#include "harness/what_if/twice.hpp"

namespace verbscope {
namespace {

TrialOutcome outcome_of(const Record& record) {
  if (record.status == RecordStatus::failed) return {.failure = record.reason};
  const std::optional<double> rate = number_at(record.result, "rate_mops");
  if (!rate || !(*rate > 0)) return {.failure = "its record has no rate"};
  const Diagnosis then = explain(record).diagnosis;
  return {.mops = *rate, .limit = then.binding ? std::string(words_for(then.binding->load.resource)) : "unknown"};
}

}  // namespace

SimulatedRuns::SimulatedRuns(const Record& record, Json profile, RunPlace place)
    : record_(record),
      profile_(std::move(profile)),
      place_(std::move(place)),
      point_(point_again(record, place_.spec)) {}

Record SimulatedRuns::base() {
  return run_one({}, count_++);
}

std::vector<TrialOutcome> SimulatedRuns::run(const std::vector<Trial>& trials) {
  std::vector<TrialOutcome> outcomes(trials.size());
  run_parallel(trials.size(), place_.jobs, [&](std::size_t i) {
    try {
      outcomes[i] = outcome_of(run_one(trials[i], count_ + i));
    } catch (const InterruptedError&) {
      throw;
    } catch (const Error& error) {
      outcomes[i].failure = error.what();
    }
  });
  count_ += trials.size();
  return outcomes;
}

Record SimulatedRuns::run_one(const Trial& trial, std::size_t number) const {
  const bool more = std::ranges::find(trial.doubled, Resource::outstanding) != trial.doubled.end();
  Json profile = profile_with_twice(profile_, trial.doubled);
  Point point = with_options(point_, trial.options);
  if (more && keeps_one_under_way(record_)) {
    profile = twice_as_fast(profile_);
  } else if (more) {
    point = with_options(point, twice_outstanding(record_));
  }
  const std::filesystem::path file = temp_.file(fmt::format("{}.json", number));
  replace_file(file, dump_json(profile) + "\n");
  return run_on(file, point);
}

Record SimulatedRuns::run_on(const std::filesystem::path& profile, const Point& point) const {
  const RoleLimits limits{.timeout = kTimeout};
  const PointRunner runner(place_.binary, place_.spec, RunTarget{.fabric = "sim:" + profile.string(), .cast = {}},
                           limits, place_.stop);
  std::optional<Record> record = runner.run(point);
  if (!record) throw InterruptedError("interrupted");
  return std::move(*record);
}

}  // namespace verbscope
