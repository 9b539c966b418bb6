// Compares the hosts of a cluster: the same points with each host as the server. A host whose figures differ from those
// of the others is left out, because one profile describes all machines.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/record.hpp"
#include "harness/learn/candidates.hpp"
#include "harness/learn/learner.hpp"

namespace verbscope {

struct SlowHost {
  std::string name;
  std::size_t points = 0;    // that differ
  std::string worst;         // the point that differs most
  double worst_percent = 0;  // from the second fastest host
};

struct Survey {
  std::vector<Record> records;    // of the good hosts
  std::vector<std::size_t> good;  // numbers of the hosts that may be the server
  std::vector<SlowHost> slow;
  bool interrupted = false;
};

// Measures each point on each host. A host differs if two of its points are off the second fastest host by more than
// kHostsDiffer; of two hosts, off the faster one. With one host there is nothing to compare.
inline constexpr double kHostsDiffer = 0.06;  // of the logarithm
Survey survey_of(const std::vector<std::string>& hosts, const std::vector<Candidate>& points,
                 const std::function<std::optional<Record>(const Point&, std::size_t server)>& measure);

// The hosts that differ like this in figures that exist. Other points do not count: they were measured on two hosts
// because one figure was disturbed.
std::vector<SlowHost> slow_hosts(const std::vector<MeasuredFigure>& figures, const std::vector<Candidate>& points);

}  // namespace verbscope
