#include "drivers_patch/counter_report.hpp"

#include <array>

#include "wire/nic_family.hpp"

namespace verbscope::driver {
namespace {

std::string blind_of(const WireFacts& wire) {
  std::string blind =
      "what the adapter reads and writes for requests of peers, and its reads of QP contexts and translations";
  if (!wire.known) blind += "; PCIe: the adapter is none of mlx4 and mlx5";
  if (wire.computed) blind += fmt::format("; the device is no {}: PCIe is computed", to_string(wire.family));
  return blind;
}

}  // namespace

WireFacts facts_of(const ClusterWire& cluster) {
  return {.known = true,
          .family = cluster.family,
          .computed = false,
          .recv_prefetch = static_cast<std::uint32_t>(cluster.recv_prefetch),
          .pcie = cluster.pcie,
          .blueflame_max = cluster.blueflame_max,
          .doorbell = cluster.doorbell_bytes,
          .cqe = cluster.cqe_bytes};
}

Sums difference(const Sums& end, const Sums& begin) {
  Sums sums = end;
  add_scaled(sums, begin, ~std::uint64_t{0});  // -1 times
  return sums;
}

std::string opcode_text(std::size_t opcode) {
  constexpr std::array<const char*, 12> kNames{
      "RDMA_WRITE",           "RDMA_WRITE_WITH_IMM", "SEND",    "SEND_WITH_IMM", "RDMA_READ", "ATOMIC_CMP_AND_SWP",
      "ATOMIC_FETCH_AND_ADD", "LOCAL_INV",           "BIND_MW", "SEND_WITH_INV", "TSO",       "DRIVER1"};
  return opcode < kNames.size() ? kNames[opcode] : fmt::format("opcode {}", opcode);
}

Json by_opcode_json(const std::uint64_t (&counts)[kOpcodes]) {
  Json out = Json::object();
  for (std::size_t i = 0; i < kOpcodes; ++i) {
    if (counts[i] > 0) out[opcode_text(i)] = counts[i];
  }
  return out;
}

Json events_json(const PcieCounts& counts) {
  Json out = Json::object();
  PcieCounts::each(counts, [&out](const char* name, std::uint64_t value) { out[name] = value; });
  return out;
}

CounterReport counter_report(const WireFacts& wire, const Sums& sums, double window_s) {
  CounterReport report{
      .source = "driver", .node = "", .blind = blind_of(wire), .window_s = window_s, .events = sums.pcie.exact};
  const Json most = events_json(sums.pcie.most);
  for (const auto& [name, value] : most.items()) {
    if (!wire.known || value != 0) report.unseen.push_back(name);
  }
  report.extra = {{"computed", wire.computed},
                  {"by_opcode", by_opcode_json(sums.sends.by_opcode)},
                  {"exact", events_json(sums.pcie.exact)},
                  {"adapter_decides_least", events_json(sums.pcie.least)},
                  {"adapter_decides_most", most},
                  {"blueflames", sums.sends.blueflames},
                  {"doorbells", wire.known ? sums.doorbells() : 0}};
  if (wire.known) report.extra["nic_family"] = to_string(wire.family);
  return report;
}

}  // namespace verbscope::driver
