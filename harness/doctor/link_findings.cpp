#include "harness/doctor/link_findings.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "harness/doctor/fact_reader.hpp"
#include "wire/pcie.hpp"

namespace verbscope {
namespace {

// The number at the beginning of "8.0 GT/s PCIe" or "16"; 0 if unknown.
double leading_number(const Json& value) {
  const std::string text = fact_text(value);
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Bandwidth of a PCIe link in one direction, TLP headers included. Empty if its speed or width is unknown.
std::optional<double> gbit_per_s(const Json& speed, const Json& width) {
  const double lanes = leading_number(width);
  for (const PcieGeneration& each : kPcieGenerations) {
    if (each.gt_per_s == leading_number(speed) && lanes > 0) return each.lane_mb_per_s * 8e-3 * lanes;
  }
  return std::nullopt;
}

struct Rate {
  double gbit_per_s = 0;
  std::string lanes{}, speed{};  // "4X", "HDR"
};

// "200 Gb/sec (4X HDR)", as the kernel writes it.
Rate rate_of(const Json& port) {
  const std::string text = fact_text(fact_at(port, "rate"));
  const std::size_t open = text.find('('), blank = text.find(' ', open), close = text.find(')', open);
  if (open == std::string::npos || blank == std::string::npos || close == std::string::npos) return {};
  return {.gbit_per_s = leading_number(fact_at(port, "rate")),
          .lanes = text.substr(open + 1, blank - open - 1),
          .speed = text.substr(blank + 1, close - blank - 1)};
}

bool is_infiniband(const Json& port) {
  return fact_text(fact_at(port, "link_layer")) == "InfiniBand";
}

// A port that is down reports its maximum rate, or the kernel's default.
bool is_up(const Json& port) {
  constexpr std::array kUp{"INIT", "ARMED", "ACTIVE"};
  return std::ranges::find(kUp, fact_text(fact_at(port, "state"))) != kUp.end();
}

// The data rate. The nominal rate of InfiniBand up to QDR includes its 8b/10b encoding (IBTA specification 1.7, volume
// 2, chapter 5); that of Ethernet does not.
double data_gbit_per_s(const Json& port) {
  const Rate rate = rate_of(port);
  const bool coded = is_infiniband(port) && (rate.speed == "SDR" || rate.speed == "DDR" || rate.speed == "QDR");
  return coded ? rate.gbit_per_s * 8 / 10 : rate.gbit_per_s;
}

struct SlotPort {
  std::string name;  // "mlx5_0:1"
  double gbit_per_s;
};

struct Slot {
  const Json* pcie;
  std::vector<SlotPort> ports{};
};

// The PCIe link and the ports of each slot. Virtual functions are left out: they share the port of the physical
// function.
std::map<std::string, Slot> slots_of(const std::vector<Json>& devices, int ib_port) {
  std::map<std::string, Slot> slots;
  for (const Json& device : devices) {
    if (fact_at(device, "software") == true || fact_at(device, "virtual_function") == true) continue;
    const std::string name = fact_text(fact_at(device, "name")), address = fact_text(fact_at(device, "slot"));
    // A device with an unknown address gets a slot of its own.
    Slot& slot = slots.try_emplace(address.empty() ? name : address, Slot{&fact_at(device, "pcie")}).first->second;
    for (const Json& port : fact_list(device, "ports")) {
      const std::string number = fact_text(fact_at(port, "port"));
      if (!is_up(port) || (ib_port != 0 && std::to_string(ib_port) != number)) continue;
      if (const double rate = data_gbit_per_s(port); rate > 0) slot.ports.push_back({name + ":" + number, rate});
    }
  }
  return slots;
}

void judge_slot(const Slot& slot, std::vector<Finding>& out) {
  const Json &speed = fact_at(*slot.pcie, "speed"), &width = fact_at(*slot.pcie, "width");
  const std::optional<double> carried = gbit_per_s(speed, width);
  if (!carried) return;
  const std::string limit =
      fmt::format("the slot ({}) carries {:.3g} Gb/s, TLP headers included", pcie_text(speed, width), *carried);
  const double can = gbit_per_s(fact_at(*slot.pcie, "max_speed"), fact_at(*slot.pcie, "max_width")).value_or(*carried);
  std::vector<std::string> names;
  double together = 0;
  bool any_alone = false;
  for (const SlotPort& port : slot.ports) {
    names.push_back(port.name);
    together += port.gbit_per_s;
    if (port.gbit_per_s <= *carried) continue;
    any_alone = true;
    out.push_back({fmt::format("{}: the port runs at {:g} Gb/s, {}", port.name, port.gbit_per_s, limit),
                   can >= port.gbit_per_s ? "a slot that gives the card all its lanes and speed"
                                          : "the card's own PCIe is the limit: expect no more than that"});
  }
  if (any_alone || together <= *carried) return;
  out.push_back({fmt::format("{}: together {:g} Gb/s, {}", fmt::join(names, ", "), together, limit),
                 can >= together ? "a slot that gives the card all its lanes and speed"
                                 : "measure one port at a time, or expect no more than that of all"});
}

}  // namespace

std::string pcie_text(const Json& speed, const Json& width) {
  const std::string gt = fact_text(speed), lanes = fact_text(width);
  if (gt.empty() && lanes.empty()) return "not known";
  return fmt::format("{} {}", gt.empty() ? "speed not known," : gt, lanes.empty() ? "width not known" : "x" + lanes);
}

void judge_pcie(const Json& device, std::vector<Finding>& out) {
  const Json& pcie = fact_at(device, "pcie");
  const Json &speed = fact_at(pcie, "speed"), &max_speed = fact_at(pcie, "max_speed");
  const Json &width = fact_at(pcie, "width"), &max_width = fact_at(pcie, "max_width");
  if (std::ranges::any_of(std::array{&speed, &max_speed, &width, &max_width},
                          [](const Json* each) { return leading_number(*each) <= 0; })) {
    return;
  }
  if (leading_number(speed) >= leading_number(max_speed) && leading_number(width) >= leading_number(max_width)) return;
  out.push_back({fmt::format("{}: PCIe runs at {}, the card can {}", fact_text(fact_at(device, "name")),
                             pcie_text(speed, width), pcie_text(max_speed, max_width)),
                 "another slot, the card reseated, the slot's setting in the BIOS"});
}

void judge_slots(const std::vector<Json>& devices, int ib_port, std::vector<Finding>& out) {
  for (const auto& [address, slot] : slots_of(devices, ib_port)) judge_slot(slot, out);
}

void judge_link(const std::string& name, const Json& port, std::vector<Finding>& out) {
  if (!is_up(port)) return;
  const Rate rate = rate_of(port);
  const bool one_lane = rate.lanes == "1X", slowest = rate.speed == "SDR";
  if (is_infiniband(port) ? !one_lane && !slowest : !one_lane || !slowest) return;
  out.push_back({fmt::format("{}: the link came up at {}: {}", name, fact_text(fact_at(port, "rate")),
                             slowest ? "the slowest speed there is" : "one lane of its cable"),
                 "the cable reseated or replaced; the speed and width that the switch's port allows"});
}

}  // namespace verbscope
