#include "nic_sim/net/topology.hpp"

#include "common/hash.hpp"

namespace verbscope::sim {

Topology::Topology(const Profile& profile, std::uint32_t nodes)
    : planes_(static_cast<std::uint32_t>(profile.wire.ports)),
      rack_nodes_(profile.fabric.switches.rack_nodes == 0 ? nodes : profile.fabric.switches.rack_nodes),
      uplinks_(profile.fabric.switches.uplinks),
      flow_paths_(profile.fabric.switches.flow_paths),
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
// QPs. With several paths per flow, successive packets take neighbouring cables.
std::uint32_t Topology::route(std::uint32_t number, const Packet& packet) const {
  const std::uint32_t rack = packet.target_node / rack_nodes_;
  if (!is_spine(number) && number % per_plane_ == rack) return packet.target_node % rack_nodes_;
  const std::uint64_t nodes = std::uint64_t{packet.source_node} << 32 | packet.target_node;
  const std::uint64_t qps = std::uint64_t{packet.source_qp} << 32 | packet.target_qp;
  std::uint64_t path = mix(mix(nodes + number) ^ qps);
  if (flow_paths_ > 1) path = path % uplinks_ + packet.sequence % flow_paths_;
  const auto cable = static_cast<std::uint32_t>(path % uplinks_);
  return is_spine(number) ? rack * uplinks_ + cable : rack_nodes_ + cable;
}

namespace {

BufferLimits limits_of_switch(const SwitchProfile& profile) {
  return {.size = profile.buffer.value,
          .alpha = profile.alpha,
          .xoff = profile.pfc_xoff.value,
          .xon = profile.pfc_xon.value};
}

// A node's port has its buffer for itself. It pauses its sender when half of it is in use; the rest is for packets on
// their way.
BufferLimits limits_of_node(const Profile& profile) {
  const std::uint64_t size = profile.nic.input_buffer.value;
  return {.size = size, .alpha = static_cast<double>(size), .xoff = size / 2, .xon = size / 4};
}

}  // namespace

Wiring::Wiring(Mailbox& box, const Profile& profile, std::uint32_t count)
    : mailbox(box),
      nodes(count),
      topology(profile, count),
      port_rate{profile.wire.port_rate.value * profile.fabric.port_share},
      uplink_rate(profile.fabric.switches.uplink_rate),
      transmit(profile.nic.transmit),
      cable(profile.fabric.cable),
      switch_latency(profile.fabric.switch_latency),
      loss_probability(profile.fabric.loss_probability),
      switch_discipline(make_discipline(profile.fabric.flow_control, limits_of_switch(profile.fabric.switches))),
      node_discipline(make_discipline(profile.fabric.flow_control, limits_of_node(profile))),
      marking(profile.fabric.switches) {}

}  // namespace verbscope::sim
