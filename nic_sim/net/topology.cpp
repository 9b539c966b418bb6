#include "nic_sim/net/topology.hpp"

#include "common/hash.hpp"

namespace verbscope::sim {

Topology::Topology(const Profile& profile, std::uint32_t nodes)
    : nodes_(nodes),
      planes_(static_cast<std::uint32_t>(profile.wire.ports)),
      rack_nodes_(profile.fabric.switches.rack_nodes == 0 ? nodes : profile.fabric.switches.rack_nodes),
      uplinks_(profile.fabric.switches.uplinks),
      racks_((nodes + rack_nodes_ - 1) / rack_nodes_),
      per_plane_(racks_ > 1 ? racks_ + 1 : 1) {}

std::uint32_t Topology::ports_of(std::uint32_t number) const {
  if (is_spine(number)) return racks_ * uplinks_;
  return rack_nodes_ + (racks_ > 1 ? uplinks_ : 0);
}

SwitchPort Topology::of_node(std::uint32_t node, std::uint32_t plane) const {
  return {plane * per_plane_ + node / rack_nodes_, node % rack_nodes_};
}

// Cable i of a rack connects the i-th uplink of its switch to the spine, whose ports are in the order of the racks.
FarEnd Topology::far_end(SwitchPort port) const {
  const std::uint32_t plane = port.of / per_plane_, place = port.of % per_plane_;
  if (is_spine(port.of)) {
    return {false, plane * per_plane_ + port.number / uplinks_, rack_nodes_ + port.number % uplinks_};
  }
  if (port.number < rack_nodes_) return {true, place * rack_nodes_ + port.number, plane};
  return {false, plane * per_plane_ + racks_, place * uplinks_ + port.number - rack_nodes_};
}

// A hash of the flow selects the cable, as ECMP does by addresses and the UDP source port, which identifies the two
// QPs.
std::uint32_t Topology::way_out(std::uint32_t number, const Packet& packet) const {
  const std::uint32_t rack = packet.target_node / rack_nodes_;
  if (!is_spine(number) && number % per_plane_ == rack) return packet.target_node % rack_nodes_;
  const std::uint64_t nodes = std::uint64_t{packet.source_node} << 32 | packet.target_node;
  const std::uint64_t qps = std::uint64_t{packet.source_qp} << 32 | packet.target_qp;
  const auto cable = static_cast<std::uint32_t>(mix(mix(nodes + number) ^ qps) % uplinks_);
  return is_spine(number) ? rack * uplinks_ + cable : rack_nodes_ + cable;
}

}  // namespace verbscope::sim
