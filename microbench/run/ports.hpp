// The choice of the device and of those of its ports that a run uses.
#pragma once

#include <string>
#include <vector>

#include "verbs/provider.hpp"

namespace verbscope {

struct DevicePorts {
  std::string device;
  std::vector<int> ports;  // ascending
};

// `device` is "mlx5_0", "mlx5_0:2" (that port only) or "" (the first device); `port` 0 means every active one. Throws
// Error: no device, no such port, port not active.
DevicePorts choose_ports(Provider& provider, const std::string& device, int port);

}  // namespace verbscope
