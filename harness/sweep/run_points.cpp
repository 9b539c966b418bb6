#include "harness/sweep/run_points.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>

#include "common/error.hpp"
#include "common/record.hpp"
#include "common/text.hpp"
#include "harness/sweep/parallel.hpp"

namespace verbscope {
namespace {

// Writes records of points that run at the same time, in the order of the points.
class OrderedResults {
 public:
  // At most `max_ahead` points may be ahead of the first unwritten one, which bounds memory.
  OrderedResults(ResultsWriter& writer, std::size_t max_ahead) : writer_(writer), max_ahead_(max_ahead) {}

  // Waits until point `index` is within this limit. Returns false if no more points are to be run.
  bool wait_turn(std::size_t index);
  // Writes the record once all earlier ones are written. Throws what the writer throws. After an exception or close(),
  // no more points are to be run.
  void add(std::size_t index, const Record& record);
  // Ends the sequence: wakes waiting threads and writes the remaining records in order, without the missing ones.
  void close();

 private:
  ResultsWriter& writer_;
  std::size_t max_ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
  std::map<std::size_t, Record> waiting_;
  bool closed_ = false;
};

bool OrderedResults::wait_turn(std::size_t index) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || index < next_ + max_ahead_; });
  return !closed_;
}

void OrderedResults::add(std::size_t index, const Record& record) {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    writer_.append(record);  // the point ended after close(): kept, out of order
    return;
  }
  waiting_.emplace(index, record);
  try {
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == next_; first = waiting_.begin()) {
      writer_.append(first->second);
      waiting_.erase(first);
      ++next_;
    }
  } catch (...) {
    closed_ = true;
    changed_.notify_all();
    throw;
  }
  changed_.notify_all();
}

void OrderedResults::close() {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  closed_ = true;
  changed_.notify_all();
  for (const auto& [index, record] : waiting_) writer_.append(record);
  waiting_.clear();
}

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

std::filesystem::path results_path(const std::string& out, const std::string& name) {
  if (!out.empty()) return out;
  const std::filesystem::path folder = "results/local";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("cannot create the folder {}: {}", folder.string(), error.message());
  return folder / (name + ".jsonl");
}

}  // namespace verbscope
