// Findings about an adapter's links: PCIe below the card's maximum, ports faster than PCIe, and missing network lanes.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/findings.hpp"

namespace verbscope {

// "8.0 GT/s PCIe x16"; "not known" in place of null.
std::string pcie_text(const Json& speed, const Json& width);

// Reports a PCIe link that runs below the card's maximum. Ignores links with unknown values.
void judge_pcie(const Json& device, std::vector<Finding>& out);

// Reports ports that are up and faster than their slot: a single port, or all ports of one slot together. `ib_port`: 0
// for all.
void judge_slots(const std::vector<Json>& devices, int ib_port, std::vector<Finding>& out);

// Reports a link that runs on one lane or at the slowest speed. On Ethernet one lane is normal (25 GbE).
void judge_link(const std::string& name, const Json& port, std::vector<Finding>& out);

}  // namespace verbscope
