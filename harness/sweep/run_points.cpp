#include "harness/sweep/run_points.hpp"

#include <fmt/format.h>

#include <mutex>

#include "common/text.hpp"
#include "harness/sweep/ordered_results.hpp"
#include "harness/sweep/parallel.hpp"

namespace verbscope {
namespace {

// Records per job that may wait for an earlier, slower point.
constexpr std::size_t kAheadPerJob = 16;

// The bandwidth, for comparisons of large messages; empty if the benchmark does not report one.
std::string bandwidth_text(const Json& result) {
  const auto found = result.find("bandwidth_gbit_per_s");
  if (found == result.end() || !found->is_number()) return "";
  return fmt::format(", {} Gb/s", with_digits(found->get<double>(), 2));
}

std::optional<Record> run_with_retries(const Point& point, const RunPoint& run, int retries, StopSource& stop) {
  Json reasons = Json::array();
  while (!stop.pending()) {
    std::optional<Record> record = run(point);
    if (!record) return std::nullopt;
    const bool last = record->status == RecordStatus::ok || reasons.size() == static_cast<std::size_t>(retries);
    if (!last) {
      reasons.push_back(record->reason);
      continue;
    }
    if (!reasons.empty()) record->environment["failed_attempts"] = std::move(reasons);
    return record;
  }
  return std::nullopt;
}

}  // namespace

std::string outcome_text(const Record& record) {
  if (record.status == RecordStatus::failed) return "FAILED: " + record.reason;
  const auto rate = record.result.find("rate_mops");
  if (rate == record.result.end() || !rate->is_number()) return "ok";
  return with_digits(rate->get<double>(), 2) + " Mops" + bandwidth_text(record.result);
}

PointsOutcome run_points(const std::vector<Point>& points, const RunPoint& run, const PointsOptions& options,
                         ResultsWriter& writer, Progress& progress, StopSource& stop) {
  const PointNames names(points);
  OrderedResults results(writer, kAheadPerJob * options.jobs);
  PointsOutcome outcome;
  std::mutex mutex;
  const auto one = [&](std::size_t i) {
    if (!results.wait_turn(i)) return;
    const std::string name = names.name(points[i]);
    if (options.jobs == 1) progress.started(name);
    const auto start = std::chrono::steady_clock::now();
    const std::optional<Record> record = run_with_retries(points[i], run, options.retries, stop);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!record) {
      results.close();
      return;
    }
    results.add(i, *record);
    const bool failed = record->status == RecordStatus::failed;
    const std::lock_guard lock(mutex);
    ++outcome.ended;
    if (failed && outcome.failed++ == 0) outcome.reason = record->reason;
    progress.finished(i, name, outcome_text(*record), took / static_cast<double>(options.jobs));
    if (failed && options.fail_fast) results.close();
  };
  run_parallel(points.size(), options.jobs, [&](std::size_t i) {
    try {
      one(i);
    } catch (...) {
      results.close();  // no thread may wait for this point
      throw;
    }
  });
  results.close();
  outcome.interrupted = stop.pending();
  return outcome;
}

}  // namespace verbscope
