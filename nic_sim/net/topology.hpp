// Switches, cables and routes. Nodes are on one switch, or in racks whose switches are connected by a spine; a flow
// keeps one path. Each port of a node has a set of switches of its own, a plane.
#pragma once

#include <cstdint>

#include "nic_sim/link/packet.hpp"
#include "nic_sim/profile/profile.hpp"

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
  std::uint32_t way_out(std::uint32_t number, const Packet& packet) const;

 private:
  bool is_spine(std::uint32_t number) const { return racks_ > 1 && number % per_plane_ == racks_; }

  std::uint32_t nodes_;
  std::uint32_t planes_;
  std::uint32_t rack_nodes_;
  std::uint32_t uplinks_;
  std::uint32_t racks_;
  std::uint32_t per_plane_;  // switches
};

}  // namespace verbscope::sim
