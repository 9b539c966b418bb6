// The available counter sources: their names on command lines and in records, and their construction.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "counters/collector.hpp"
#include "counters/source.hpp"

namespace verbscope {

// The names for --counter_sources, in the order of records.
const std::vector<std::string>& counter_sources();

// "auto": all except "neo-host", "rdma-statistic" and "driver" if `device` (there is a NIC to count), else none.
// "none". Or a list, "papi,nic". Throws UsageError that names `option`.
std::vector<std::string> parse_counters(const std::string& text, const std::string& option, bool device);

// `required`: all sources. Otherwise one of the sources named in `text`, on the machine under test; none if it names
// none.
CountersNeeded counters_needed(const std::string& text, bool required, const std::string& node);

struct CounterPlace {
  std::string node;        // the node whose PCIe slot is counted: "server"
  std::string device;      // the NIC; empty: none
  std::vector<int> ports;  // the NIC's ports
  Picos window{0};         // expected length of the measurement window; 0: unknown
  Picos patience{0};       // longest time for a tool to start and to measure the background
};

// Makes the sources with these names, in the order of counter_sources(). Precondition: all names are in that list.
std::vector<std::unique_ptr<CounterSource>> make_sources(const std::vector<std::string>& names,
                                                         const CounterPlace& place);

}  // namespace verbscope
