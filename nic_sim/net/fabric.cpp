#include "nic_sim/net/fabric.hpp"

#include "nic_sim/net/credit_fabric.hpp"
#include "nic_sim/net/ethernet.hpp"

namespace verbscope::sim {

std::uint32_t switches_of(const Profile& profile, std::uint32_t nodes) {
  return facts(profile.wire.link_type).ethernet ? Topology(profile, nodes).switches() : 0;
}

Picos min_latency(const Profile& profile) {
  return facts(profile.wire.link_type).ethernet ? Ethernet::min_latency(profile)
                                                : CreditFabric::latency_to_switch(profile);
}

std::unique_ptr<Fabric> make_fabric(Mailbox& mailbox, const Profile& profile, std::uint32_t nodes,
                                    const std::vector<SwitchHome>& switches, std::uint64_t seed) {
  if (!facts(profile.wire.link_type).ethernet) return std::make_unique<CreditFabric>(mailbox, profile, seed);
  return std::make_unique<Ethernet>(mailbox, profile, nodes, switches, seed);
}

}  // namespace verbscope::sim
