#include "wire/wire_json.hpp"

namespace verbscope {
namespace {

constexpr double kBytesPerGbit = 1e9 / 8;
constexpr int kLargest = 1 << 30;  // upper limit for all numbers of a record

// Visits every number that is written and read, with its key and its smallest valid value. Bytes appear as their value.
template <class Wire, class Visit>
void each_number(Wire& wire, Visit&& visit) {
  visit("pcie_generation", wire.pcie.generation, 1);
  visit("pcie_lanes", wire.pcie.lanes, 1);
  visit("pcie_lane_mb_per_s", wire.pcie.lane_mb_per_s, 1);
  visit("pcie_request_header_bytes", wire.pcie.request_header.value, 0);
  visit("pcie_completion_header_bytes", wire.pcie.completion_header.value, 0);
  visit("pcie_mps_bytes", wire.pcie.mps.value, 1);
  visit("pcie_mrrs_bytes", wire.pcie.mrrs.value, 1);
  visit("pcie_rcb_bytes", wire.pcie.rcb.value, 1);
  visit("ports", wire.ports, 1);
  visit("mtu_bytes", wire.mtu.value, 1);
  visit("blueflame_max_bytes", wire.blueflame_max.value, 0);
  visit("cqe_bytes", wire.cqe_bytes.value, 1);
  visit("doorbell_bytes", wire.doorbell_bytes.value, 1);
  visit("max_inline_bytes", wire.max_inline.value, 0);
  visit("recv_prefetch_wqes", wire.recv_prefetch, 1);
}

}  // namespace

Json to_json(const ClusterWire& wire) {
  Json json{{"nic_family", to_string(wire.family)}, {"port_gbit_per_s", wire.port_rate.value / kBytesPerGbit}};
  if (wire.link_type != LinkType::infiniband) json["link_type"] = to_string(wire.link_type);
  each_number(wire, [&json](const char* name, auto value, int) { json[name] = value; });
  return json;
}

ClusterWire wire_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  ClusterWire wire;
  const auto word = [&fields](const char* key, auto from) {
    try {
      return from(fields.require<std::string>(key));
    } catch (const Error& error) {
      fields.fail_key(key, error.what());
    }
  };
  wire.family = word("nic_family", nic_family_from);
  if (fields.has("link_type")) wire.link_type = word("link_type", link_type_from);
  wire.port_rate = BytesPerSecond{fields.require<double>("port_gbit_per_s", 1e-3, kLargest) * kBytesPerGbit};
  each_number(wire, [&fields]<class T>(const char* name, T& value, int least) {
    value = fields.require<T>(name, static_cast<T>(least), static_cast<T>(kLargest));
  });
  fields.reject_unknown();
  return wire;
}

}  // namespace verbscope
