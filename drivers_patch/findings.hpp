// What of a program's requests costs more on PCIe than it must, and what a change would save there. Each is reckoned by
// the rules of cost.hpp: the same requests once more, with that one thing changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "drivers_patch/summary.hpp"

namespace verbscope::driver {

struct Finding {
  std::string name;            // "not inline", one word or two
  std::string text;            // which requests, and what to change
  std::uint64_t requests = 0;  // that it comes from
  // By how much the rate may rise, in percent, where the busier direction of the PCIe link is the limit; where another
  // resource is, by less. Bytes of which the adapter decides are taken at their least.
  double gain_percent = 0;
};

// The largest gain first; those below `least_percent` are left out. Empty where the adapter is not known.
std::vector<Finding> find_costs(const Summary& summary, double least_percent = 1);

}  // namespace verbscope::driver
