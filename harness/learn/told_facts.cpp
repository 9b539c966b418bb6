#include "harness/learn/told_facts.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>

#include "analysis/points.hpp"
#include "harness/doctor/host_facts.hpp"
#include "wire/packet.hpp"
#include "wire/pcie.hpp"

namespace verbscope {
namespace {

// The first number in a text: 8 in "8.0 GT/s PCIe", 100 in "100 Gb/sec (4X EDR)".
std::optional<double> first_number(const Json& text) {
  if (text.is_number()) return text.get<double>();
  if (!text.is_string()) return std::nullopt;
  const auto words = text.get<std::string>();
  const auto digit = std::ranges::find_if(words, [](unsigned char c) { return std::isdigit(c) != 0; });
  if (digit == words.end()) return std::nullopt;
  return std::strtod(&*digit, nullptr);
}

// Data rates of InfiniBand links in Gb/s whose nominal rate in /sys counts 64b/66b encoding (IBTA 1.3, volume 2).
double data_rate(double nominal) {
  constexpr double kFdr = 56, kFdrData = 54.54, kFdr10 = 40;
  if (nominal == kFdr) return kFdrData;
  return nominal < kFdr10 ? nominal * 0.8 : nominal;  // SDR to QDR: 8b/10b
}

void add_pcie(const Json& pcie, Json& values) {
  const auto speed = first_number(fact_at(pcie, "speed")), width = first_number(fact_at(pcie, "width"));
  if (width) values["wire.pcie_lanes"] = static_cast<int>(*width);
  if (!speed) return;
  for (const PcieGeneration& known : kPcieGenerations) {
    if (known.gt_per_s != *speed) continue;
    values["wire.pcie_generation"] = known.generation;
    values["wire.pcie_lane_mb_per_s"] = known.lane_mb_per_s;
    values["wire.pcie_request_header_bytes"] = known.request_header.value;
    values["wire.pcie_completion_header_bytes"] = known.completion_header.value;
  }
}

void add_port(const Json& port, Json& values) {
  const bool ethernet = fact_at(port, "link_layer") == "Ethernet";
  values["wire.link_type"] = ethernet ? "roce_v2" : "infiniband";
  if (const auto rate = first_number(fact_at(port, "rate"))) {
    values["wire.port_gbit_per_s"] = ethernet ? *rate : data_rate(*rate);
  }
  if (const auto mtu = number_at(port, "mtu_bytes")) values["wire.mtu_bytes"] = static_cast<int>(*mtu);
}

}  // namespace

ToldFacts told_by_profile(const Json& profile, const std::string& name) {
  ToldFacts out{.cite = "stated by the simulated hosts of " + name};
  for (const auto& [key, parameter] : profile.at("wire").items()) out.values["wire." + key] = parameter.at("value");
  if (!out.values.contains("wire.link_type")) out.values["wire.link_type"] = "infiniband";
  for (const char* key : {"cores", "threads_per_core", "shared_core_speed"}) {
    if (profile.at("host").contains(key))
      out.values[std::string("host.") + key] = profile.at("host").at(key).at("value");
  }
  return out;
}

const Json& device_of(const Json& facts, const Host& host) {
  static const Json kNone;
  for (const Json& device : fact_list(facts, "devices")) {
    if (host.device.empty() || fact_at(device, "name") == host.device) return device;
  }
  return kNone;
}

ToldFacts told_by_host(const Json& facts, const Host& host) {
  ToldFacts out{.cite = "read from /sys of " + host.name};
  const Json& device = device_of(facts, host);
  const std::string driver = fact_text(fact_at(device, "driver"));
  if (driver.starts_with("mlx4")) out.values["wire.nic_family"] = "mlx4";
  if (driver.starts_with("mlx5")) out.values["wire.nic_family"] = "mlx5";
  add_pcie(fact_at(device, "pcie"), out.values);
  const std::set<int> cores = core_set(host.cores.empty() ? fact_text(fact_at(facts, "allowed_cores")) : host.cores);
  if (!cores.empty()) out.values["host.cores"] = static_cast<int>(cores.size());
  int active = 0;
  for (const Json& port : fact_list(device, "ports")) {
    const bool wanted = host.ib_port == 0 || fact_at(port, "port") == host.ib_port;
    if (!wanted || fact_text(fact_at(port, "state")).find("ACTIVE") == std::string::npos) continue;
    add_port(port, out.values);
    ++active;
  }
  if (active > 0) out.values["wire.ports"] = active;
  return out;
}

ToldFacts told_by_record(const Record& record) {
  const Json* const hosts = value_at(record.environment, "hosts");
  if (hosts != nullptr && hosts->is_object() && !hosts->empty()) {
    Host host;
    host.name = hosts->items().begin().key();
    ToldFacts told = told_by_host(hosts->items().begin().value(), host);
    if (told.values.contains("wire.nic_family")) return told;
  }
  ToldFacts out{.cite = "stated by the records"};
  const Json* const wire = value_at(record.prediction, "wire");
  if (wire == nullptr || !wire->is_object()) return out;
  for (const auto& [key, value] : wire->items()) out.values["wire." + key] = value;
  if (!out.values.contains("wire.link_type")) out.values["wire.link_type"] = "infiniband";
  const bool simulated = record.environment.value("simulated", false);
  if (const auto cores = number_at(record.environment, "cores"); cores && !simulated)
    out.values["host.cores"] = static_cast<int>(*cores);
  return out;
}

Json with_told(Json profile, const ToldFacts& told) {
  for (const auto& [name, value] : told.values.items()) {
    const std::size_t dot = name.find('.');
    Json& section = profile.at(name.substr(0, dot));
    const std::string key = name.substr(dot + 1);
    if (key == "link_type" && value == "infiniband" && !section.contains(key)) continue;
    if (section.contains(key) && section.at(key).at("value") == value) continue;
    section[key] = Json{{"value", value}, {"source", "measured"}, {"cite", told.cite}};
  }
  return profile;
}

bool same_kind(const Json& profile, const ToldFacts& told) {
  const Json& wire = profile.at("wire");
  const auto type = [](const Json& parameter) { return parameter.value("value", ""); };
  const std::string link = wire.contains("link_type") ? type(wire.at("link_type")) : "infiniband";
  const std::string family = told.values.value("wire.nic_family", type(wire.at("nic_family")));
  const std::string wanted = told.values.value("wire.link_type", link);
  const auto ethernet = [](const std::string& name) { return facts(link_type_from(name)).ethernet; };
  return family == type(wire.at("nic_family")) && ethernet(link) == ethernet(wanted);
}

}  // namespace verbscope
