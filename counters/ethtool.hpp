// Statistics of a network interface's driver: what `ethtool -S` shows.
#pragma once

#include <string>

#include "counters/source.hpp"

namespace verbscope {

// Every statistic of the interface. Throws Error ("eth0: Operation not supported").
Sums read_ethtool(const std::string& interface);

}  // namespace verbscope
