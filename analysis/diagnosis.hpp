// Why a point has the rate that it has: the resource that is its limit, and the one that would be the next.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/loads.hpp"

namespace verbscope {

struct Limit {
  Load load;
  bool of_peer = false;  // a client's, not the machine's under test
};

struct Diagnosis {
  Loads loads;
  // The binding resource; absent when the evidence does not decide. Then `undecided` says why, in one sentence.
  std::optional<Limit> binding;
  std::string undecided;
  // The resource that would bind when the binding one were lifted, and how many times the rate would then be possible;
  // absent when nothing else is known to be used.
  std::optional<Limit> next;
  double lifted_factor = 0;

  // The factor of the rate that is expected with `times` the capacity of the binding resource. There is a binding one.
  double factor_with(double times) const;
};

Diagnosis diagnose(const Loads& loads);

// The rest of a load when the binding resource is lifted: all of it elsewhere; on the link to the NIC what is not
// MMIO when that is the limit; of a unit the mean of all when one QP's is.
double load_without(const Diagnosis& diagnosis, const Load& load, bool of_peer);

}  // namespace verbscope
