// The loads after doubling the capacity of some resources, in every machine.
#pragma once

#include <vector>

#include "analysis/loads.hpp"

namespace verbscope {

// The resources whose capacity is doubled.
struct Doubling {
  std::vector<Resource> doubled;  // each by its capacity()
  // The requester units become fast enough that no WQE waits for them and is read again.
  bool no_rereads = false;

  bool has(Resource resource) const;
};

// The load after the doubling. Precondition: `load` affects the rate.
double with_twice(const Load& load, const Doubling& of, const Loads& loads);

// The latency load after the doubling; `latency` is the one before.
double latency_with_twice(double latency, const Doubling& of, const Loads& loads);

}  // namespace verbscope
