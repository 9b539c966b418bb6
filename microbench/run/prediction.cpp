#include "microbench/run/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "common/error.hpp"
#include "pcie_model/predict.hpp"
#include "pcie_model/render.hpp"

namespace verbscope {

namespace {

namespace fs = std::filesystem;

// Only root can read these from the device; common values of servers.
constexpr Bytes kAssumedMps{256};
constexpr Bytes kAssumedMrrs{512};
constexpr Bytes kAssumedRcb{64};
constexpr int kAssumedPrefetch = 16;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "8.0 GT/s PCIe": the generation with that rate, or null.
const PcieGeneration* generation_of(const std::string& speed) {
  const double gt_per_s = std::strtod(speed.c_str(), nullptr);
  for (const PcieGeneration& generation : kPcieGenerations) {
    if (std::abs(generation.gt_per_s - gt_per_s) < 0.01) return &generation;
  }
  return nullptr;
}

std::optional<NicFamily> family_of(const std::string& driver) {
  const auto* const family = std::ranges::find(kFamilies, driver, &FamilyFacts::driver);
  return family == kFamilies.end() ? std::nullopt : std::optional(family->value);
}

}  // namespace

DeviceFacts read_device_facts(const fs::path& sysfs, const std::string& device, int port, int ports, std::uint32_t mtu,
                              std::uint32_t inline_limit) {
  const fs::path base = sysfs / "class" / "infiniband" / device;
  const fs::path slot = base / "device";
  std::error_code ignored;
  const std::string driver = fs::read_symlink(slot / "driver", ignored).filename();
  const std::optional<NicFamily> family = family_of(driver);
  if (!family) {
    return {std::nullopt, driver.empty() ? fmt::format("{} is no PCIe device: nothing to model", device)
                                         : fmt::format("no WQE layout known for the driver {} of {}", driver, device)};
  }
  const std::string speed = first_line(slot / "current_link_speed");
  const PcieGeneration* generation = generation_of(speed);
  const int lanes = std::atoi(first_line(slot / "current_link_width").c_str());
  if (generation == nullptr || lanes <= 0) {
    return {std::nullopt, fmt::format("PCIe link of {} unknown: speed \"{}\", width {}", device, speed, lanes)};
  }
  const double gbit_per_s = std::strtod(first_line(base / "ports" / std::to_string(port) / "rate").c_str(), nullptr);
  const FamilyFacts& known = facts(*family);
  ClusterWire wire;
  wire.name = device;
  wire.pcie = {generation->generation,
               lanes,
               generation->lane_mb_per_s,
               generation->request_header,
               generation->completion_header,
               kAssumedMps,
               kAssumedMrrs,
               kAssumedRcb};
  wire.family = *family;
  wire.ports = ports;
  wire.port_rate = BytesPerSecond{gbit_per_s * 1e9 / 8};
  wire.mtu = Bytes(mtu);
  wire.blueflame_max = known.blueflame_max;
  wire.cqe_bytes = known.cqe;
  wire.doorbell_bytes = known.doorbell;
  wire.max_inline = Bytes(inline_limit);
  wire.recv_prefetch = kAssumedPrefetch;
  return {wire, ""};
}

namespace {

// Number of ports that the server's QPs use: no more than there are QPs.
int ports_in_use(const Topology& topology) {
  std::uint32_t last = 0;
  for (const QpPlan& qp : plan_qps(topology, Side::server, 0)) {
    if (!qp.partners.empty()) last = std::max(last, qp.port);
  }
  return static_cast<int>(last) + 1;
}

}  // namespace

void predict_point(const Benchmark& benchmark, const Plan& plan, const ClusterWire& wire, const NodeReport& own,
                   Outcome& outcome) {
  try {
    Prediction prediction = benchmark.predict_run(wire, plan.operation, ports_in_use(plan.topology), outcome.result);
    if (own.window_ops > 0 && own.cq_armings) {
      const double armings = static_cast<double>(*own.cq_armings) / static_cast<double>(own.window_ops);
      prediction = with_completion_events(prediction, armings);
    }
    outcome.prediction = to_json(prediction);
  } catch (const Error& error) {
    outcome.no_prediction = error.what();
  }
}

void predict_for_device(const Benchmark& benchmark, const Plan& plan, const NodeRun& node, const NodeReport& own,
                        Outcome& outcome) {
  const DeviceFacts facts =
      read_device_facts("/sys", node.device().name(), node.device().port(), static_cast<int>(plan.topology.ports),
                        node.mtu(), plan.operation.inline_limit);
  if (facts.wire) {
    predict_point(benchmark, plan, *facts.wire, own, outcome);
  } else {
    outcome.no_prediction = facts.why_not;
  }
}

}  // namespace verbscope
