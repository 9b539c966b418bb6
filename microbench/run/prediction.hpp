// The closed-form model of a point that has run, and the facts about a real adapter that the model needs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "microbench/bench/benchmark.hpp"
#include "microbench/run/node_run.hpp"
#include "microbench/run/report.hpp"
#include "wire/cluster_wire.hpp"

namespace verbscope {

struct DeviceFacts {
  std::optional<ClusterWire> wire;
  std::string why_not;  // one line, if there is no wire
};

// Reads the facts of `device` from `sysfs` ("/sys"): family by the kernel driver (mlx4_core, mlx5_core), the slot's
// generation and width, the port's rate. MPS 256, MRRS 512 and RCB 64 bytes are assumed. `mtu` in bytes.
DeviceFacts read_device_facts(const std::filesystem::path& sysfs, const std::string& device, int port, int ports,
                              std::uint32_t mtu, std::uint32_t inline_limit);

// Adds to the outcome, whose result must be complete, the prediction for hardware with these facts, or the reason why
// the model has none. `own`: the report of the server.
void predict_point(const Benchmark& benchmark, const Plan& plan, const ClusterWire& wire, const NodeReport& own,
                   Outcome& outcome);

// The same for the adapter of `node`.
void predict_for_device(const Benchmark& benchmark, const Plan& plan, const NodeRun& node, const NodeReport& own,
                        Outcome& outcome);

}  // namespace verbscope
