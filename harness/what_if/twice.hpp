// A cluster's profile with twice of a resource: what doubles it stands beside its name in analysis/resource.cpp.
// (tests/analysis/attribution.py has a table of its own, so that the two check each other.)
#pragma once

#include <string>
#include <vector>

#include "analysis/resource.hpp"
#include "common/json.hpp"

namespace verbscope {

// Whether the profile has a parameter that doubles the resource, a capacity(). Never for those that options make.
bool can_double(const Json& profile, Resource resource);

// The profile with twice of each of these in every machine: times that only they take are halved, sizes and numbers
// doubled; a parameter that two of them have is changed once.
Json profile_with_twice(Json profile, const std::vector<Resource>& resources);

// The profile in which everything takes half of its time: what twice as many operations under way would bring to a
// program that keeps one.
Json twice_as_fast(Json profile);

// The parameters of those of these resources of which all values are assumed: "nic.qp_context_cache_bytes".
std::vector<std::string> assumed_parameters(const Json& profile, const std::vector<Resource>& resources);

}  // namespace verbscope
