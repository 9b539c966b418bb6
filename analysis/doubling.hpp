// What the loads become when resources have twice their capacity, in every machine.
#pragma once

#include <vector>

#include "analysis/loads.hpp"

namespace verbscope {

// What the rate is asked of, when these have twice the capacity.
struct Doubling {
  std::vector<Resource> doubled;  // by their capacity()
  // WQEs that are read again because they wait for a unit are read no more: it is fast enough then.
  bool no_rereads = false;

  bool has(Resource resource) const;
};

// The load, which is one of those that bear on the rate, with twice of these.
double with_twice(const Load& load, const Doubling& of, const Loads& loads);

// What latency becomes, when it was `latency`.
double latency_with_twice(double latency, const Doubling& of, const Loads& loads);

}  // namespace verbscope
