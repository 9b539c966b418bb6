// Interface of a counter source. The collector starts it before the traffic, reads it between the phases of a run, and
// requests its report at the end.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/record.hpp"
#include "common/units.hpp"

namespace verbscope {

// When a source is read. background: before any traffic of the run. trial: to measure the cost of a reading.
enum class Moment { trial, background_begin, background_end, window_begin, window_end };
inline constexpr int kMoments = 5;

// Control path. Any call can throw Error with one line that explains why the source cannot count. Then the source is
// not used again, and the record contains the line.
class CounterSource {
 public:
  virtual ~CounterSource() = default;
  // The source's name in --counter_sources and in records.
  virtual std::string name() const = 0;
  virtual void start() = 0;
  // True if it has measured enough of the background. Called repeatedly.
  virtual bool background_done() { return true; }
  // Passes the benchmark's running threads (thread ids of gettid).
  virtual void attach(const std::vector<int>& /*threads*/) {}
  virtual void read(Moment moment) = 0;
  // The report, without `node`. `ops_per_s`: operations per second of this node in the window; 0 if it counts none.
  virtual CounterReport report(double ops_per_s) = 0;
};

// Counts, by the source's own names.
using Columns = std::map<std::string, double>;
using Sums = std::map<std::string, std::uint64_t>;

// An event of common/pcie_events.hpp, and the columns whose sum it is.
using EventRule = std::pair<std::string, std::vector<std::string>>;

// The counts of a source. Background rates are measured without the benchmark.
struct Counted {
  double window_s = 0;
  Columns raw;  // total in the window; NaN: the counter decreased
  double background_s = 0;
  Columns background_per_s;
};

// Makes a report of `source` whose `extra` has `raw`, `background_per_s` and `net` (raw minus background, at least 0).
// Each event is the sum of its columns in `net` (`rules`); events without a rule are unseen.
CounterReport make_report(const std::string& source, const std::string& blind, const Counted& counted,
                          const std::vector<EventRule>& rules);

// Report of a source that counted nothing: every event is unseen, and `blind` is the reason.
CounterReport missing_report(const std::string& source, const std::string& reason);

// A source whose counters only increase. The counts are the differences between its readings.
class SnapshotSource : public CounterSource {
 public:
  void read(Moment moment) override;

 protected:
  // Current values of all counters. Throws Error.
  virtual Sums snapshot() = 0;
  // The differences, for counters that exist at both ends.
  Counted counted() const;

 private:
  struct Snapshot {
    Picos time{0};  // the middle of the reading
    Sums values;
  };
  const Snapshot& at(Moment moment) const { return snapshots_[static_cast<std::size_t>(moment)]; }
  Columns differences(Moment begin, Moment end) const;

  std::array<Snapshot, kMoments> snapshots_;
};

}  // namespace verbscope
