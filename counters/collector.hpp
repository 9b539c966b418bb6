// Everything that counts on this machine beside one benchmark: what was asked for, what of it is there, and a report of
// each. Control path; one thread calls it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "counters/source.hpp"

namespace verbscope {

// The sources that have to count, lest the run fails.
enum class CountersNeeded { none, one, all };

class Collector {
 public:
  Collector(std::string node, std::vector<std::unique_ptr<CounterSource>> sources, CountersNeeded needed);

  // Before any traffic: starts the sources and lets them see the background. Throws Error when a required source is
  // missing.
  void measure_background();
  // While the benchmark's threads run, before the window. Learns what a reading costs.
  void attach(const std::vector<int>& threads);
  void begin_window();
  void end_window();

  struct Collected {
    std::vector<CounterReport> reports;  // one a source, those that are missing too
    std::string failure;                 // one line about the first needed source that is missing
  };
  // After the run. `ops_per_s`: operations of this node in a second of the window; 0 when it counts none.
  Collected collect(double ops_per_s);

 private:
  struct Entry {
    std::unique_ptr<CounterSource> source;
    std::string missing;  // why it does not count; empty: it does
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
