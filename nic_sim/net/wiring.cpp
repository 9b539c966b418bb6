#include "nic_sim/net/wiring.hpp"

namespace verbscope::sim {
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
      of_switches(make_discipline(profile.fabric.flow_control, limits_of_switch(profile.fabric.switches))),
      of_nodes(make_discipline(profile.fabric.flow_control, limits_of_node(profile))),
      marking(profile.fabric.switches) {}

}  // namespace verbscope::sim
