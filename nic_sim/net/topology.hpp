// Switches, cables and routes. Nodes are on one switch, or in racks whose switches are connected by a spine; a flow
// keeps one path, or takes several in turn. Each port of a node has a set of switches of its own, a plane.
#pragma once

#include <cstdint>
#include <memory>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/net/discipline.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/logical_process.hpp"

namespace verbscope::sim {

// A port of a switch.
struct SwitchPort {
  std::uint32_t of;  // the switch
  std::uint32_t number;
};

// The far end of the cable at a port of a switch: a node, or a port of another switch.
struct FarEnd {
  bool is_node;
  std::uint32_t id;    // of the node or the switch
  std::uint32_t port;  // of that switch; for a node, its plane
};

class Topology {
 public:
  Topology(const Profile& profile, std::uint32_t nodes);

  std::uint32_t switches() const { return per_plane_ * planes_; }
  std::uint32_t ports_of(std::uint32_t number) const;

  // The switch port to which a node's port is connected.
  SwitchPort of_node(std::uint32_t node, std::uint32_t plane) const;
  FarEnd far_end(SwitchPort port) const;
  // True if the cable connects two switches.
  bool is_uplink(SwitchPort port) const { return !far_end(port).is_node; }
  // The port through which the packet leaves the switch.
  std::uint32_t route(std::uint32_t number, const Packet& packet) const;

 private:
  bool is_spine(std::uint32_t number) const { return racks_ > 1 && number % per_plane_ == racks_; }

  std::uint32_t planes_;
  std::uint32_t rack_nodes_;
  std::uint32_t uplinks_;
  std::uint32_t flow_paths_;
  std::uint32_t racks_;
  std::uint32_t per_plane_;  // switches
};

// Facts that all ports and switches of an Ethernet network share.
struct Wiring {
  Wiring(Mailbox& box, const Profile& profile, std::uint32_t count);

  // Numbers in the mailbox: nodes first, then switches.
  std::uint32_t id_of(std::uint32_t number) const { return nodes + number; }
  BytesPerSecond rate_of(SwitchPort port) const { return topology.is_uplink(port) ? uplink_rate : port_rate; }
  // Time from a decision to pause until the neighbour has received the pause frame.
  Picos pause_latency(BytesPerSecond rate, Picos inside) const {
    return inside + cable + TransferTime(rate)(kMinFrame + kPreamble + kInterpacketGap);
  }

  Mailbox& mailbox;
  std::uint32_t nodes;
  Topology topology;
  BytesPerSecond port_rate, uplink_rate;
  Picos transmit;        // from a node's unit to its port
  Picos cable;           // one way
  Picos switch_latency;  // from port to port
  double loss_probability;
  std::unique_ptr<Discipline> switch_discipline, node_discipline;
  Marking marking;
};

}  // namespace verbscope::sim
