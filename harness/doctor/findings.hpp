// Findings about a machine: each names one setting that distorts measurements, and a remedy.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"

namespace verbscope {

struct Finding {
  std::string problem;  // "cores: governor powersave, not performance"
  std::string remedy;   // "cpupower frequency-set -g performance"
};

// The device, port, cores and memory node that a hosts file requests on a machine.
struct HostRequest {
  std::string device{};  // empty: any
  int ib_port = 0;       // 0: any
  std::string cores{};   // a list in Linux's format; empty: not given
  int numa_node = -1;    // -1: not given
};

// Checks the result of host_facts, possibly from another machine. Values that are missing or of another type count as
// unknown. Devices and ports that the hosts file does not request are ignored.
std::vector<Finding> host_findings(const Json& facts, const HostRequest& request);

// "8.0 GT/s PCIe x16"; "not known" in place of null.
std::string pcie_text(const Json& speed, const Json& width);

}  // namespace verbscope
