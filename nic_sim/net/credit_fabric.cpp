#include "nic_sim/net/credit_fabric.hpp"

#include <algorithm>
#include <cstdlib>

namespace verbscope::sim {
namespace {

constexpr std::int64_t kMaxReports = 8;  // reports to a port, at most, while its held bytes grow to the limit

}  // namespace

CreditFabric::Port::Port(CreditFabric& f, const Attachment& n, std::uint64_t seed)
    : fabric(&f), engine(n.engine), node(n), room(f.input_buffer_), random(seed) {}

Picos CreditFabric::latency_to_switch(const Profile& profile) {
  return std::max(profile.nic.transmit + profile.fabric.cable + profile.fabric.switch_latency, Picos(1));
}

CreditFabric::CreditFabric(Mailbox& mailbox, const Profile& profile, std::uint64_t seed)
    : mailbox_(mailbox),
      ports_per_node_(static_cast<std::size_t>(profile.wire.ports)),
      input_buffer_(profile.nic.input_buffer.value),
      transfer_time_(BytesPerSecond{profile.wire.port_rate.value * profile.fabric.port_share}),
      to_switch_(latency_to_switch(profile)),
      max_held_(1 + static_cast<std::int64_t>(2 * to_seconds(to_switch_) * profile.wire.port_rate.value *
                                              profile.fabric.port_share)),
      cable_(profile.fabric.cable),
      loss_probability_(profile.fabric.loss_probability),
      seed_(seed) {}

void CreditFabric::attach(const Attachment& node) {
  for (std::size_t i = 0; i < ports_per_node_; ++i) ports_.emplace_back(*this, node, seed_ + ports_.size());
}

// A port schedules departures no further ahead than its latency to the switch, so that no more departs after it is
// stopped.
bool CreditFabric::may_depart(const Port& port) const {
  return !stopped(port) && port.out.free_at() <= port.engine->now() + to_switch_;
}

void CreditFabric::send(Packet& packet) {
  Port& port = source(packet);
  if (port.waiting.empty() && may_depart(port)) return depart(port, packet);
  if (stopped(port)) ++port.node.counts->credit_waits;
  port.waiting.push(packet);
  depart_all(port);
}

void CreditFabric::depart(Port& port, Packet& packet) {
  const Picos time = duration(packet);
  const Picos end = port.out.take(port.engine->now(), time);
  if (packet.completes) port.node.left_port(port.node.node, packet, end);
  if (packet.counted && packet.kind == Packet::Kind::request) {
    ++port.node.counts->messages_sent;
    if (packet.target_node == kEveryNode) [[unlikely]]  // a datagram, which is sent once
      return replicate(port, packet, end - time + to_switch_);
  }
  mailbox_.send(packet.source_node, packet.target_node, end - time + to_switch_, &at_switch, this, as_argument(packet));
}

void CreditFabric::replicate(const Port& port, Packet& packet, Picos when) {
  copy_to_nodes(*port.node.packets, packet, static_cast<std::uint32_t>(nodes()), [this, when](Packet& copy) {
    mailbox_.send(copy.source_node, copy.target_node, when, &copy_at_switch, this, as_argument(copy));
  });
}

// The subnet manager has programmed the switch to forward to the ports that have joined the group.
void CreditFabric::copy_at_switch(void* object, std::uint64_t argument) {
  Packet& packet = as_packet(argument);
  const Attachment& target = static_cast<CreditFabric*>(object)->target(packet).node;
  if (!target.has_joined(target.node, packet)) return target.packets->give_back(packet);
  at_switch(object, argument);
}

// Lets waiting packets depart as far as possible, and schedules the rest for when the port is free.
void CreditFabric::depart_all(Port& port) {
  while (!port.waiting.empty() && may_depart(port)) depart(port, port.waiting.pop(port.node.packets->memory()));
  if (port.waiting.empty() || stopped(port) || port.departs_later) return;
  port.departs_later = true;
  port.engine->schedule(port.out.free_at() - to_switch_, &port_is_free, &port);
}

void CreditFabric::port_is_free(void* object, std::uint64_t) {
  Port& port = *static_cast<Port*>(object);
  port.departs_later = false;
  port.fabric->depart_all(port);
}

void CreditFabric::at_switch(void* object, std::uint64_t argument) {
  CreditFabric& fabric = *static_cast<CreditFabric*>(object);
  Packet& packet = as_packet(argument);
  Port& to = fabric.target(packet);
  if (fabric.loss_probability_ > 0 && to.random.uniform() < fabric.loss_probability_) {
    ++to.node.counts->dropped_by_switch;
    to.node.packets->give_back(packet);
  } else if (to.held.empty() && packet.wire_bytes <= to.room) {
    fabric.forward(to, packet);
  } else {
    fabric.hold(to, packet);
  }
}

void CreditFabric::hold(Port& to, Packet& packet) {
  to.held.push(packet);
  report_held(to, packet, packet.wire_bytes);
}

// The source port learns of the change after the time from port to switch. Changes below an eighth of the limit
// are reported together with later ones.
void CreditFabric::report_held(Port& to, const Packet& packet, std::int64_t bytes) {
  if (to.held_from.empty()) to.held_from.resize(nodes());
  Held& held = to.held_from[packet.source_node];
  held.now += bytes;
  const std::int64_t change = held.now - held.reported;
  if (std::abs(change) * kMaxReports < max_held_ && held.now > 0) return;
  held.reported = held.now;
  mailbox_.send(packet.target_node, packet.source_node, to.engine->now() + to_switch_, &held_reported, &source(packet),
                static_cast<std::uint64_t>(change));
}

void CreditFabric::held_reported(void* object, std::uint64_t bytes) {
  Port& port = *static_cast<Port*>(object);
  port.held_elsewhere += static_cast<std::int64_t>(bytes);
  port.fabric->depart_all(port);
}

void CreditFabric::forward(Port& to, Packet& packet) {
  to.room -= packet.wire_bytes;
  const Picos end = to.in.take(to.engine->now(), duration(packet));
  to.engine->schedule(end + cable_, &at_target, this, as_argument(packet));
}

void CreditFabric::at_target(void* object, std::uint64_t argument) {
  Packet& packet = as_packet(argument);
  const Attachment& target = static_cast<CreditFabric*>(object)->target(packet).node;
  target.receive(target.node, packet);
}

std::vector<PortTimes> CreditFabric::port_times(std::uint32_t node) const {
  std::vector<PortTimes> times;
  for (std::size_t i = 0; i < ports_per_node_; ++i) {
    const Port& port = ports_[node * ports_per_node_ + i];
    times.push_back({port.out.busy(port.engine->now()), port.in.busy(port.engine->now())});
  }
  return times;
}

void CreditFabric::release(Packet& packet) {
  Port& port = target(packet);
  free_room(port, packet.wire_bytes);
  if (!packet.freed_by_writer) port.node.packets->give_back(packet);
}

void CreditFabric::free_room(Port& port, std::uint64_t bytes) {
  port.room += bytes;
  while (!port.held.empty() && port.held.front().wire_bytes <= port.room) {
    Packet& packet = port.held.pop(port.node.packets->memory());
    report_held(port, packet, -static_cast<std::int64_t>(packet.wire_bytes));
    forward(port, packet);
  }
}

}  // namespace verbscope::sim
