// Driver statistics of a network interface, as in `ethtool -S`.
#pragma once

#include <string>

#include "counters/source.hpp"

namespace verbscope {

// All statistics of the interface. Throws Error ("eth0: Operation not supported").
Sums read_ethtool(const std::string& interface);

}  // namespace verbscope
