// The address of a peer, as attributes for libibverbs and as text. Shared by address handles (Ah) and RTR (Qp).
#pragma once

#include <infiniband/verbs.h>

#include <string>

#include "verbs/resources.hpp"

namespace verbscope {

ibv_ah_attr ah_attributes(const PathAddress& path);

// "LID 5" or "GID ::ffff:10.9.0.1 from GID index 1", with service level, traffic class and flow label if not 0.
std::string describe_path(const PathAddress& path);

}  // namespace verbscope
