// The facts about a real adapter that the closed-form model needs, as far as sysfs says them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "wire/cluster_wire.hpp"

namespace verbscope {

struct DeviceFacts {
  std::optional<ClusterWire> wire;
  std::string why_not;  // one line, when there is no wire
};

// Facts of `device` from `sysfs` ("/sys"): family by the kernel driver (mlx4_core, mlx5_core), the slot's generation
// and width, the port's rate. MPS 256, MRRS 512 and RCB 64 bytes are assumed. `mtu` in bytes.
DeviceFacts read_device_facts(const std::filesystem::path& sysfs, const std::string& device, int port, int ports,
                              std::uint32_t mtu, std::uint32_t inline_limit);

}  // namespace verbscope
