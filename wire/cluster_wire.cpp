#include "wire/cluster_wire.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "common/error.hpp"

namespace verbscope {

namespace {

const PcieGeneration& find_generation(int generation) {
  for (const PcieGeneration& known : kPcieGenerations) {
    if (known.generation == generation) return known;
  }
  fail("PCIe generation {}: must be from {} to {}", generation, kPcieGenerations.front().generation,
       kPcieGenerations.back().generation);
}

// Reads a parameter of `section`: its value, after a check of its source.
Json read_parameter(JsonFields& section, const std::string& key) {
  constexpr std::array<std::string_view, 5> kSources{"documented", "measured", "calibrated", "learned", "assumed"};
  JsonFields parameter(section.at(key), section.where() + ": " + key);
  const auto source = parameter.require<std::string>("source");
  if (std::find(kSources.begin(), kSources.end(), source) == kSources.end()) {
    parameter.fail_key("source",
                       fmt::format("'{}' is not a source; allowed are {}", source, fmt::join(kSources, ", ")));
  }
  if (parameter.require<std::string>("cite").empty())
    parameter.fail_key("cite", "is empty; it must name the source of the value");
  // A calibrated value names the published point that it was calibrated on.
  if (source == "calibrated" && parameter.require<std::string>("row").empty())
    parameter.fail_key("row", "is empty; it must name the row that the value was calibrated on");
  // A learned value names its records and has the interval in which it is. The records may leave an assumed one a wide
  // interval.
  if (source == "learned" && parameter.require<std::string>("row").empty())
    parameter.fail_key("row", "is empty; it must name the records that the value was learned from");
  if (source == "learned" || (source == "assumed" && parameter.has("interval"))) {
    const auto interval = parameter.require<std::vector<double>>("interval");
    if (interval.size() != 2 || !(interval[0] <= interval[1]))
      parameter.fail_key("interval", "expected two numbers, the smaller one first");
  }
  Json value = parameter.at("value");
  parameter.reject_unknown();
  return value;
}

// The generation determines the rate, so any other value is an error.
double lane_rate(ParameterSection& parameters, const std::string& key, int generation) {
  constexpr double kRounded = 0.01, kAny = std::numeric_limits<double>::max();
  const double known = find_generation(generation).lane_mb_per_s;
  const double value = parameters.number(key, -kAny, kAny);
  if (!(std::abs(value - known) <= kRounded * known)) {
    parameters.fail(
        key, fmt::format("{} contradicts pcie_generation {}, which has {:.4g} per lane", value, generation, known));
  }
  return value;
}

constexpr const char* kCompletionKey = "pcie_completion_bytes";

PcieLink read_link(ParameterSection& parameters) {
  PcieLink link;
  link.generation = parameters.integer("pcie_generation", 1, 6);
  link.lanes = parameters.integer("pcie_lanes", kPcieWidths.front(), kPcieWidths.back());
  link.lane_mb_per_s = lane_rate(parameters, "pcie_lane_mb_per_s", link.generation);
  link.request_header = parameters.bytes("pcie_request_header_bytes", 0, 64);
  link.completion_header = parameters.bytes("pcie_completion_header_bytes", 0, 64);
  link.mps = parameters.power_of_two("pcie_mps_bytes", 128, 4096);
  link.mrrs = parameters.power_of_two("pcie_mrrs_bytes", 128, 4096);
  link.rcb = parameters.power_of_two("pcie_rcb_bytes", 64, static_cast<int>(link.mps.value));
  link.completion =
      parameters.power_of_two(kCompletionKey, static_cast<int>(link.rcb.value), static_cast<int>(link.mps.value));
  return link;
}

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
  visit(kCompletionKey, wire.pcie.completion.value, 1);
  visit("ports", wire.ports, 1);
  visit("mtu_bytes", wire.mtu.value, 1);
  visit("blueflame_max_bytes", wire.blueflame_max.value, 0);
  visit("cqe_bytes", wire.cqe_bytes.value, 1);
  visit("doorbell_bytes", wire.doorbell_bytes.value, 1);
  visit("max_inline_bytes", wire.max_inline.value, 0);
  visit("recv_prefetch_wqes", wire.recv_prefetch, 1);
}

}  // namespace

template <class T>
T ParameterSection::read(const std::string& key) {
  return json_value<T>(read_parameter(fields_, key), fields_.where() + ": " + key);
}

std::string ParameterSection::text(const std::string& key) {
  return read<std::string>(key);
}

double ParameterSection::number(const std::string& key, double low, double high) {
  const auto value = read<double>(key);
  if (!(value >= low && value <= high)) fail(key, fmt::format("{} is outside {} to {}", value, low, high));
  return value;
}

int ParameterSection::integer(const std::string& key, int low, int high) {
  const auto value = read<std::int64_t>(key);
  if (value < low || value > high) fail(key, fmt::format("{} is outside {} to {}", value, low, high));
  return static_cast<int>(value);
}

Bytes ParameterSection::bytes(const std::string& key, int low, int high) {
  return Bytes(static_cast<std::uint64_t>(integer(key, low, high)));
}

Bytes ParameterSection::power_of_two(const std::string& key, int low, int high) {
  const Bytes value = bytes(key, low, high);
  if (!std::has_single_bit(value.value)) fail(key, fmt::format("{} is not a power of two", value.value));
  return value;
}

ClusterWire read_cluster_wire(const Json& profile, const std::string& where) {
  JsonFields file(profile, where);
  if (const auto schema = file.require<std::string>("schema"); schema != kClusterSchema) {
    file.fail_key("schema",
                  fmt::format("{} is not supported; this program reads \"{}\"", dump_json(schema), kClusterSchema));
  }
  ClusterWire cluster;
  cluster.name = file.require<std::string>("name");
  ParameterSection parameters(file.object("wire"));
  cluster.pcie = read_link(parameters);
  cluster.family = parameters.word("nic_family", nic_family_from);
  if (parameters.has("link_type")) cluster.link_type = parameters.word("link_type", link_type_from);
  cluster.ports = parameters.integer("ports", 1, 8);
  cluster.port_rate = BytesPerSecond{parameters.number("port_gbit_per_s", 0.1, 10'000) * 1e9 / 8};
  cluster.mtu = parameters.power_of_two("mtu_bytes", 256, 4096);
  cluster.blueflame_max = parameters.bytes("blueflame_max_bytes", 0, 4096);
  cluster.cqe_bytes = parameters.power_of_two("cqe_bytes", 32, 128);
  cluster.doorbell_bytes = parameters.power_of_two("doorbell_bytes", 4, 8);
  cluster.max_inline = parameters.bytes("max_inline_bytes", 0, 1024);
  cluster.recv_prefetch = static_cast<int>(parameters.power_of_two("recv_prefetch_wqes", 1, 1024).value);
  parameters.done();
  return cluster;
}

ClusterWire with_pcie(ClusterWire cluster, std::optional<int> generation, std::optional<int> lanes) {
  if (generation && *generation != cluster.pcie.generation) {
    const PcieGeneration& other = find_generation(*generation);
    cluster.pcie.generation = other.generation;
    cluster.pcie.lane_mb_per_s = other.lane_mb_per_s;
    cluster.pcie.request_header = other.request_header;
    cluster.pcie.completion_header = other.completion_header;
  }
  if (lanes) {
    if (std::find(kPcieWidths.begin(), kPcieWidths.end(), *lanes) == kPcieWidths.end()) {
      fail("PCIe x{}: no such width; allowed are x{}", *lanes, fmt::join(kPcieWidths, ", x"));
    }
    cluster.pcie.lanes = *lanes;
  }
  return cluster;
}

Json to_json(const ClusterWire& wire) {
  Json json{{"nic_family", to_string(wire.family)}, {"port_gbit_per_s", wire.port_rate.value / kBytesPerGbit}};
  if (wire.link_type != LinkType::infiniband) json["link_type"] = to_string(wire.link_type);
  each_number(wire, [&json](const char* name, auto value, int) { json[name] = value; });
  return json;
}

ClusterWire wire_from_json(const Json& json, const std::string& where) {
  JsonFields fields(json, where);
  ClusterWire wire;
  wire.family = fields.parse("nic_family", nic_family_from);
  if (fields.has("link_type")) wire.link_type = fields.parse("link_type", link_type_from);
  wire.port_rate = BytesPerSecond{fields.require<double>("port_gbit_per_s", 1e-3, kLargest) * kBytesPerGbit};
  each_number(wire, [&fields]<class T>(const char* name, T& value, int min) {
    // Records of older versions have only the RCB, at which all completions ended.
    if (name == kCompletionKey && !fields.has(name)) name = "pcie_rcb_bytes";
    value = fields.require<T>(name, static_cast<T>(min), static_cast<T>(kLargest));
  });
  fields.reject_unknown();
  return wire;
}

}  // namespace verbscope
