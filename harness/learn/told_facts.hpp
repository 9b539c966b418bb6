// Facts about a cluster that its hosts state, so that no measurement has to find them: PCIe, ports, MTU, the adapter's
// driver, cores. And the profile from which a fit starts.
#pragma once

#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/record.hpp"
#include "harness/cluster/hosts.hpp"

namespace verbscope {

// Values by parameter: {"wire.pcie_lanes": 16, ...}, and where they are from.
struct ToldFacts {
  Json values = Json::object();
  std::string cite;
};

// The facts that a host of this profile would state: its `wire` section and its cores.
ToldFacts told_by_profile(const Json& profile, const std::string& name);
// From the facts of `verbscope doctor` (host_facts) for the device of the hosts file. Unknown facts are left out.
ToldFacts told_by_host(const Json& facts, const Host& host);
// From a record: facts of its hosts, else the model's facts of the adapter. Empty if it has neither.
ToldFacts told_by_record(const Record& record);

// The device of the host that the hosts file names, or its first one; null if it has none.
const Json& device_of(const Json& facts, const Host& host);

// The profile with these facts.
Json with_told(Json profile, const ToldFacts& told);

// True if a cluster of this profile can become one with these facts by other values: the same family of adapters on
// the same type of network.
bool same_kind(const Json& profile, const ToldFacts& told);

}  // namespace verbscope
