// Runs all counter sources of this machine alongside one benchmark, and collects their reports. Control path; called by
// a single thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "counters/source.hpp"

namespace verbscope {

// Sources without which the run fails.
enum class CountersNeeded { none, one, all };

class Collector {
 public:
  Collector(std::string node, std::vector<std::unique_ptr<CounterSource>> sources, CountersNeeded needed);

  // Starts the sources and lets them measure the background. Call it before any traffic. Throws Error if a required
  // source is missing.
  void measure_background();
  // Call it before the measurement window, while the benchmark's threads run. Also measures the cost of a reading.
  void attach(const std::vector<int>& threads);
  void begin_window();
  void end_window();

  struct Collected {
    std::vector<CounterReport> reports;  // one per source, including the missing ones
    std::string failure;                 // one line about the first missing source that is required
  };
  // Call it after the run. `ops_per_s`: operations per second of this node in the window; 0 if it counts none.
  Collected collect(double ops_per_s);

 private:
  struct Entry {
    std::unique_ptr<CounterSource> source;
    std::string missing;  // reason why it does not count; empty if it does
    double read_pair_ns = 0;
  };
  template <class Action>
  void each(Action&& action);
  std::string failure() const;

  std::string node_;
  std::vector<Entry> entries_;
  CountersNeeded needed_;
};

}  // namespace verbscope
