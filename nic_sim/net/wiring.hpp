// Facts that all ports and switches of an Ethernet network share.
#pragma once

#include <memory>

#include "nic_sim/net/discipline.hpp"
#include "nic_sim/net/marking.hpp"
#include "nic_sim/net/topology.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/mailbox.hpp"

namespace verbscope::sim {

struct Wiring {
  Wiring(Mailbox& box, const Profile& profile, std::uint32_t count);

  // Numbers in the mailbox: nodes first, then switches.
  std::uint32_t id_of(std::uint32_t number) const { return nodes + number; }
  BytesPerSecond rate_of(SwitchPort port) const { return topology.is_uplink(port) ? uplink_rate : port_rate; }
  // Time from a decision to pause until the neighbour has received the pause frame.
  Picos pause_way(BytesPerSecond rate, Picos inside) const {
    return inside + cable + TransferTime(rate)(kLeastFrame + kPreamble + kInterpacketGap);
  }

  Mailbox& mailbox;
  std::uint32_t nodes;
  Topology topology;
  BytesPerSecond port_rate, uplink_rate;
  Picos transmit;        // from a node's unit to its port
  Picos cable;           // one way
  Picos switch_latency;  // from port to port
  double loss_probability;
  std::unique_ptr<Discipline> of_switches, of_nodes;
  Marking marking;
};

}  // namespace verbscope::sim
