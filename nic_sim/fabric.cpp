#include "nic_sim/fabric.hpp"

#include "nic_sim/nic.hpp"

namespace verbscope::sim {
Fabric::Fabric(Engine& engine, const Profile& profile, std::uint64_t seed)
    : engine_(engine),
      ports_per_node_(static_cast<std::size_t>(profile.wire.ports)),
      input_buffer_(profile.nic.input_buffer.value),
      transfer_time_(BytesPerSecond{profile.wire.port_rate.value * profile.fabric.port_share}),
      to_switch_(profile.nic.transmit + profile.fabric.cable + profile.fabric.switch_latency),
      cable_(profile.fabric.cable),
      loss_probability_(profile.fabric.loss_probability),
      random_(seed),
      packets_(profile.wire.mtu) {}

void Fabric::attach(Nic& nic) {
  for (std::size_t i = 0; i < ports_per_node_; ++i) {
    Port& port = ports_.emplace_back();
    port.nic = &nic;
    port.room = input_buffer_;
  }
}

void Fabric::send(Packet& packet) {
  Port& port = source(packet);
  if (!port.waiting.empty() || !leave(port, packet)) {
    if (port.waiting.empty()) target(packet).held_up.push_back(&port);
    port.waiting.push(packet);
    ++port.nic->counts().credit_waits;
  }
}

// False when the target has no room.
bool Fabric::leave(Port& port, Packet& packet) {
  Port& to = target(packet);
  if (to.room < packet.wire_bytes) return false;
  to.room -= packet.wire_bytes;
  const Picos time = duration(packet);
  const Picos end = port.out.take(engine_.now(), time);
  if (packet.completes) port.nic->requester().left_port(packet, end);
  engine_.schedule(end - time + to_switch_, &at_switch, this, as_argument(packet));
  return true;
}

void Fabric::at_switch(void* object, std::uint64_t argument) {
  Fabric& fabric = *static_cast<Fabric*>(object);
  Packet& packet = as_packet(argument);
  Port& to = fabric.target(packet);
  if (fabric.loss_probability_ > 0 && fabric.random_.uniform() < fabric.loss_probability_) {
    ++to.nic->counts().dropped_by_switch;
    fabric.done_with(packet);
    return;
  }
  const Picos end = to.in.take(fabric.engine_.now(), fabric.duration(packet));
  fabric.engine_.schedule(end + fabric.cable_, &at_target, object, argument);
}

void Fabric::at_target(void* object, std::uint64_t argument) {
  Packet& packet = as_packet(argument);
  static_cast<Fabric*>(object)->target(packet).nic->receive(packet);
}

void Fabric::add_port_times(std::uint32_t node, UsageTimes& times) const {
  for (std::size_t i = 0; i < ports_per_node_; ++i) {
    const Port& port = ports_[node * ports_per_node_ + i];
    times.ports_out.push_back(port.out.busy(engine_.now()));
    times.ports_in.push_back(port.in.busy(engine_.now()));
  }
}

void Fabric::done_with(Packet& packet) {
  taken_in(packet);
  packets_.give_back(packet);
}

void Fabric::free_room(Port& port, std::uint64_t bytes) {
  port.room += bytes;
  while (!port.held_up.empty()) {
    Port& sender = *port.held_up.front();
    if (!leave(sender, sender.waiting.front())) return;
    sender.waiting.pop();
    port.held_up.erase(port.held_up.begin());
    while (!sender.waiting.empty() && leave(sender, sender.waiting.front())) sender.waiting.pop();
    if (!sender.waiting.empty()) target(sender.waiting.front()).held_up.push_back(&sender);
  }
}

}  // namespace verbscope::sim
