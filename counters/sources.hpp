// The sources of counters that there are: their names on command lines and in records, and how each is made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "counters/collector.hpp"
#include "counters/source.hpp"

namespace verbscope {

// The names that --counter_sources knows, in the order of records.
const std::vector<std::string>& counter_sources();

// "auto" is all but "neo-host", "rdma-statistic" and "driver" when `device` (there is a NIC to count), else none;
// "none"; or a list, "papi,nic". Throws UsageError that names `option`.
std::vector<std::string> parse_counters(const std::string& text, const std::string& option, bool device);

// All with `required`; one of those that `text` names, on the machine under test; none where it names none.
CountersNeeded counters_needed(const std::string& text, bool required, const std::string& node);

struct CounterPlace {
  std::string node;        // the node whose PCIe slot is counted: "server"
  std::string device;      // the NIC; empty: none
  std::vector<int> ports;  // the NIC's ports
  Picos window{0};         // expected length; 0: not known
  Picos patience{0};       // longest time for a tool to begin and to see the background
};

// Makes the sources of these names, which counter_sources() has, in its order.
std::vector<std::unique_ptr<CounterSource>> make_sources(const std::vector<std::string>& names,
                                                         const CounterPlace& place);

}  // namespace verbscope
