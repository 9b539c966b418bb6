// A source of counters as the collector sees it: started before the traffic, read at the turns of the phases, asked
// for its report afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/record.hpp"
#include "common/units.hpp"

namespace verbscope {

// The moments at which a source is read. Background: before any traffic of the run. Trial: to learn what a reading
// costs.
enum class Moment { trial, background_begin, background_end, window_begin, window_end };
inline constexpr int kMoments = 5;

// Control path. Every call may throw Error with the reason, in one line, why the source does not count: it is not used
// again, and the record carries the line.
class CounterSource {
 public:
  virtual ~CounterSource() = default;
  // The source's name in --counter_sources and in records.
  virtual std::string name() const = 0;
  virtual void start() = 0;
  // Whether it has seen enough of the background; asked again and again.
  virtual bool background_done() { return true; }
  // The threads of the benchmark (as of gettid), once they run.
  virtual void attach(const std::vector<int>& /*threads*/) {}
  virtual void read(Moment moment) = 0;
  // The report, all but its `node`. `ops_per_s`: operations of this node in a second of the window; 0 when it counts
  // none.
  virtual CounterReport report(double ops_per_s) = 0;
};

// Counts by the source's own names.
using Columns = std::map<std::string, double>;
using Sums = std::map<std::string, std::uint64_t>;

// An event of common/pcie_events.hpp, and the columns that sum up to it.
using EventRule = std::pair<std::string, std::vector<std::string>>;

// The counts of a source. Background rates are measured while the benchmark does not run.
struct Counted {
  double window_s = 0;
  Columns raw;  // over the window; NaN: the counter went backwards
  double background_s = 0;
  Columns background_per_s;
};

// A report of `source` with `raw`, `background_per_s` and `net` = raw less background, not below 0, in `extra`. The
// events are sums of net columns by `rules`; events without a rule are unseen.
CounterReport make_report(const std::string& source, const std::string& blind, const Counted& counted,
                          const std::vector<EventRule>& rules);

// The report of a source that counted nothing: every event is unseen, `blind` says why.
CounterReport missing_report(const std::string& source, const std::string& reason);

}  // namespace verbscope
