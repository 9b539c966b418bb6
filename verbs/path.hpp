// The address of a peer as libibverbs and a person want it: shared by address handles (Ah) and RTR (Qp).
#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "verbs/resources.hpp"

namespace verbscope {

ibv_ah_attr ah_attributes(const PathAddress& path);

// "LID 5" or "GID ::ffff:10.9.0.1 from GID index 1", and what of service level, class and flow is not 0.
std::string describe_path(const PathAddress& path);

}  // namespace verbscope
