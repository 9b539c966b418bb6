// Adds to the environment of every record how and when the point was started, and on which hosts.
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

  // Adds environment.harness {launcher, command_line, the members of point_standing, started, ended; times with zone}
  // and environment.hosts, the facts of each host. `started`: when the point began; its end is now.
  void add_to(Record& record, const Point& point, Time started) const;

 private:
  const Site& site_;
  const Sweep& sweep_;
  Json command_line_;
};

std::string zoned_time(Provenance::Time time);

}  // namespace verbscope
