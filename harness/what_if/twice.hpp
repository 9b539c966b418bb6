// Doubles resources in a cluster's profile. analysis/resource.cpp lists the parameters of each resource.
// (tests/analysis/attribution.py has a separate table, so that each checks the other.)
#pragma once

#include <string>
#include <vector>

#include "analysis/resource.hpp"
#include "common/json.hpp"

namespace verbscope {

// True if the profile has a parameter that doubles the resource, a capacity(). False for resources that options
// determine.
bool can_double(const Json& profile, Resource resource);

// Returns the profile with each of these resources doubled in every machine: times that only they need are halved,
// sizes and numbers doubled. A parameter that two of them share is changed once.
Json profile_with_twice(Json profile, const std::vector<Resource>& resources);

// Returns the profile with every part twice as fast. For a program that keeps one operation outstanding, this has the
// effect of keeping two.
Json twice_as_fast(Json profile);

// The parameters of those resources whose values are all assumed: "nic.qp_context_cache_bytes".
std::vector<std::string> assumed_parameters(const Json& profile, const std::vector<Resource>& resources);

}  // namespace verbscope
