// What in the profile of a cluster doubles the capacity of a resource that `explain` can name: the one table of that.
// (tests/analysis/attribution.py has one of its own, so that the two check each other.)
#pragma once

#include <vector>

#include "analysis/doubling.hpp"
#include "common/json.hpp"

namespace verbscope {

// Whether the profile has a parameter that doubles the resource, a capacity(). Never for `outstanding`, which options
// double.
bool can_double(const Json& profile, Resource resource);

// The profile with twice of each of these in every machine: times that only they take are halved, sizes and numbers
// doubled; a parameter that two of them have is changed once.
Json profile_with_twice(Json profile, const std::vector<Resource>& resources);

// The profile in which everything takes half of its time: what twice as many operations under way would bring to a
// program that keeps one.
Json twice_as_fast(Json profile);

}  // namespace verbscope
