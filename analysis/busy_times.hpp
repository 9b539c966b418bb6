// Loads of one simulated node, computed from the busy times in its counters (microbench/run/sim_usage).
#pragma once

#include <string>
#include <vector>

#include "analysis/loads.hpp"

namespace verbscope {

class BusyTimes {
 public:
  // `report` must outlive this object.
  explicit BusyTimes(const CounterReport& report);

  // True if the report contains busy times.
  bool there() const;
  std::vector<Load> loads() const;

  double count(const std::string& key) const;
  // Time under `key` as a share of the measurement interval. share_each: the mean over `number` identical units.
  double share(const std::string& key) const { return count(key) / window_ps_; }
  double share_each(const std::string& key, const std::string& number) const;
  // Share of `name`'s units ("requester", "responder") that did any work.
  double used(const std::string& name) const;

 private:
  void add_links(std::vector<Load>& out) const;
  void add_units(std::vector<Load>& out, const std::string& name, Resource all, Resource one) const;
  Load held(Resource resource, const std::string& name) const;
  void divide_waits(Load& load) const;
  void set_misses(Load& load) const;

  const CounterReport& report_;
  double window_ps_;
};

}  // namespace verbscope
