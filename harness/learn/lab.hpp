// Measures points through the harness, on the machines of a hosts file or on a simulated cluster. Any host can be the
// server.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/learn/simulated_figures.hpp"
#include "harness/learn/told_facts.hpp"
#include "harness/point/site.hpp"
#include "harness/process/stop.hpp"
#include "harness/process/temp_folder.hpp"

namespace verbscope {

// Tests of the fit make the figures of a simulated cluster as imperfect as those of hardware: each has normal noise, a
// few are far too low, and the last of several hosts has a slower CPU.
struct Disturbance {
  std::uint64_t seed = 1;
  double noise = 0.01;          // standard deviation of the logarithm
  double outliers = 0.02;       // share of the points
  double outlier_factor = 1.5;  // outliers are slower by up to the square of this factor
  int hosts = 4;
  double slow_cpu = 1.3;  // factor on the CPU times of the last host
};

class Lab {
 public:
  // `hosts`: as for verbscope run. Copies the programs to the hosts. Throws one line with the host that cannot be used.
  // `programs` must outlive the lab.
  Lab(const std::string& hosts, const LauncherOptions& launcher, LearnPrograms& programs,
      const std::optional<Disturbance>& disturbance, StopSource* stop);

  // Names of the hosts that can be the server.
  const std::vector<std::string>& servers() const { return servers_; }
  // Facts that the hosts state.
  ToldFacts told() const;
  // Why the cluster has no parameters to learn: the device of a host is software. Empty if it has.
  const std::string& software_device() const { return software_; }

  // Measures the point with this host as the server; the record names it (server_of). Empty if interrupted.
  std::optional<Record> measure(const Point& point, std::size_t server) const;
  // About how long a point takes, s.
  double seconds_per_point() const;

 private:
  RunTarget target(std::size_t server) const;
  void disturb(Record& record, const Point& point, std::size_t server) const;

  LearnPrograms& programs_;
  std::optional<Disturbance> disturbance_;
  StopSource* stop_;
  Site site_;
  Sweep sweep_;
  Provenance provenance_;
  TempFolder temp_;
  std::string slow_profile_;
  std::vector<std::string> servers_;
  std::string software_;
};

// The host that was the server of a record of a lab; empty for other records.
std::string server_of(const Record& record);

}  // namespace verbscope
