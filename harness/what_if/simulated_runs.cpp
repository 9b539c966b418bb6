#include "harness/what_if/simulated_runs.hpp"

#include "analysis/points.hpp"
#include "common/files.hpp"
#include "common/hash.hpp"
#include "harness/point/point_runner.hpp"
#include "harness/sweep/parallel.hpp"
#include "harness/what_if/twice.hpp"

namespace verbscope {
namespace {

TrialOutcome outcome_of(const Record& record) {
  if (record.status == RecordStatus::failed) return {.failure = record.reason};
  const std::optional<double> rate = number_at(record.result, "rate_mops");
  if (!rate || !(*rate > 0)) return {.failure = "its record has no rate"};
  return {.mops = *rate,
          .gbit_per_s = number_at(record.result, "bandwidth_gbit_per_s").value_or(0),
          .latency_us = number_at(record.result, "lat_p50_ns").value_or(0) / 1e3};
}

}  // namespace

SimulatedRuns::SimulatedRuns(Json profile, RunPlace place, RunCache& cache)
    : profile_(std::move(profile)), place_(std::move(place)), cache_(cache) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(place_.binary, error).time_since_epoch().count();
  program_ = fmt::format("{} {} {}", place_.binary.filename().string(), written,
                         std::filesystem::file_size(place_.binary, error));
}

Record SimulatedRuns::record(const Point& point) {
  const std::size_t number = count_++;
  return run_on(profile_, point, number);
}

std::vector<TrialOutcome> SimulatedRuns::run(const std::vector<Trial>& trials) {
  std::vector<TrialOutcome> outcomes(trials.size());
  run_parallel(trials.size(), place_.jobs, [&](std::size_t i) { outcomes[i] = outcome(trials[i], count_ + i); });
  count_ += trials.size();
  return outcomes;
}

TrialOutcome SimulatedRuns::outcome(const Trial& trial, std::size_t number) const {
  const Json profile = profile_of(trial);
  const std::string key = key_of(profile, trial.point);
  if (const auto known = cache_.find(key)) return *known;
  TrialOutcome out;
  try {
    out = outcome_of(run_on(profile, trial.point, number));
  } catch (const InterruptedError&) {
    throw;
  } catch (const Error& error) {
    out.failure = error.what();
  }
  cache_.add(key, out);
  return out;
}

Json SimulatedRuns::profile_of(const Trial& trial) const {
  return trial.twice_as_fast ? twice_as_fast(profile_) : profile_with_twice(profile_, trial.doubled);
}

std::string SimulatedRuns::key_of(const Json& profile, const Point& point) const {
  const std::string all =
      fmt::format("{}\n{}\n{}\n{}", program_, dump_json(profile), dump_json(point.params), point.seed);
  return fmt::format("{:016x}", text_hash(all));
}

Record SimulatedRuns::run_on(const Json& profile, const Point& point, std::size_t number) const {
  const std::filesystem::path file = temp_.file(fmt::format("{}.json", number));
  replace_file(file, dump_json(profile) + "\n");
  const RoleLimits limits{.timeout = kTimeout};
  const PointRunner runner(place_.binary, place_.spec, RunTarget{.fabric = "sim:" + file.string(), .cast = {}}, limits,
                           place_.stop);
  std::optional<Record> record = runner.run(point);
  if (!record) throw InterruptedError("interrupted");
  return std::move(*record);
}

}  // namespace verbscope
