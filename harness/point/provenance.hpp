// The harness adds to the environment of every record how the point was started, when, and on what hosts.
#pragma once

#include <chrono>

#include "common/record.hpp"
#include "harness/point/site.hpp"
#include "harness/sweep/sweep.hpp"

namespace verbscope {

class Provenance {
 public:
  using Time = std::chrono::system_clock::time_point;

  Provenance(const Site& site, const Sweep& sweep);

  // Adds environment.harness {launcher, command_line, what point_standing says, started, ended, with the zone} and
  // environment.hosts, the facts of each. `started` is when the point began; it ends now.
  void add_to(Record& record, const Point& point, Time started) const;

 private:
  const Site& site_;
  const Sweep& sweep_;
  Json command_line_;
};

// ISO 8601 in this machine's zone: "2026-11-21T17:20:05+01:00".
std::string zoned_time(Provenance::Time time);

}  // namespace verbscope
