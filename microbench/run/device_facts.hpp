// What the closed-form model must know of a real adapter, as far as sysfs says it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "microbench/bench/benchmark.hpp"
#include "microbench/run/role.hpp"

namespace verbscope {

struct DeviceFacts {
  std::optional<ClusterWire> wire;
  std::string why_not;  // when there is no wire: one line
};

// Facts of `device` from `sysfs` ("/sys"): family by the kernel driver (mlx4_core, mlx5_core), the slot's generation
// and width, the port's rate. MPS 256, MRRS 512 and RCB 64 bytes are assumed. `mtu` in bytes.
DeviceFacts read_device_facts(const std::filesystem::path& sysfs, const std::string& device, int port, int ports,
                              std::uint32_t mtu, std::uint32_t inline_limit);

// The prediction for the role's device as JSON; null, with the reason in `why_not`, when it cannot be modelled.
Json predict_for_device(const Benchmark& benchmark, const Plan& plan, const Role& role, const Json& result,
                        std::string& why_not);

// The prediction as JSON, after the run that gave `result`; null, with the reason in `why_not`, when the model refuses
// the operation.
Json predict_json(const Benchmark& benchmark, const Plan& plan, const ClusterWire& wire, int ports, const Json& result,
                  std::string& why_not);

}  // namespace verbscope
