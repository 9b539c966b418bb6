// Findings about an adapter's links: PCIe against what the card can, its ports against PCIe, the network's lanes.
#pragma once

#include <string>
#include <vector>

#include "harness/doctor/findings.hpp"

namespace verbscope {

// "8.0 GT/s PCIe x16"; "not known" for what is null.
std::string pcie_text(const Json& speed, const Json& width);

// A PCIe link that runs below what the card can. Links of which a part is not known are left alone.
void judge_pcie(const Json& device, std::vector<Finding>& out);

// Ports that are up and faster than their slot, each alone or those of one slot together. `ib_port`: 0 is all.
void judge_slots(const std::vector<Json>& devices, int ib_port, std::vector<Finding>& out);

// A link that came up on one lane, or at the slowest speed. On Ethernet one lane is usual (25 GbE).
void judge_link(const std::string& name, const Json& port, std::vector<Finding>& out);

}  // namespace verbscope
