#include "nic_sim/net/ethernet.hpp"

#include <algorithm>

namespace verbscope::sim {

NodePort::NodePort(const Wiring& wiring, const Attachment& node, std::uint32_t number, Switch& neighbour,
                   std::uint32_t at)
    : OutPort(*node.engine, node.packets->memory(), wiring.port_rate),
      wiring_(wiring),
      node_(node),
      number_(number),
      neighbour_(neighbour),
      at_(at),
      input_(wiring.mailbox, *wiring.node_discipline, number, wiring.id_of(neighbour.number()), neighbour.output(at),
             wiring.pause_latency(wiring.port_rate, wiring.transmit)) {
  neighbour.connect_node(at, number, &arrives, this, *this);
}

void NodePort::send_begins(Packet& packet, Picos begin, Picos end) {
  if (packet.counted && packet.kind == Packet::Kind::request) ++node_.counts->messages_sent;
  if (packet.completes) node_.left_port(node_.node, packet, end);
  packet.ingress = at_;
  if (packet.target_node == kEveryNode) [[unlikely]]
    return replicate(packet, begin, end);
  to_switch(packet, begin, end);
}

void NodePort::to_switch(Packet& packet, Picos begin, Picos end) {
  const Picos ready = neighbour_.arrival_time(packet, begin, end, wiring_.transmit + wiring_.cable);
  wiring_.mailbox.send(number_, wiring_.id_of(neighbour_.number()), ready, &Switch::arrives, &neighbour_,
                       as_argument(packet));
}

// Switches flood the frame. The adapters of nodes that have not joined the group drop it.
void NodePort::replicate(Packet& packet, Picos begin, Picos end) {
  copy_to_nodes(*node_.packets, packet, wiring_.nodes,
                [this, begin, end](Packet& copy) { to_switch(copy, begin, end); });
}

void NodePort::arrives(void* object, std::uint64_t argument) {
  NodePort& port = *static_cast<NodePort*>(object);
  Packet& packet = as_packet(argument);
  if (!port.wiring_.node_discipline->admits(port.used_, port.used_, packet.wire_bytes)) {
    ++port.dropped_;
    return port.give_back(packet);
  }
  port.used_ += packet.wire_bytes;
  port.input_.entered(packet.priority, packet.wire_bytes, port.engine_.now());
  port.node_.receive(port.node_.node, packet);
}

Ethernet::Ethernet(Mailbox& mailbox, const Profile& profile, std::uint32_t nodes, const std::vector<SwitchHome>& homes,
                   std::uint64_t seed)
    : wiring_(mailbox, profile, nodes), planes_(static_cast<std::uint32_t>(profile.wire.ports)) {
  const Topology& topology = wiring_.topology;
  for (std::uint32_t number = 0; number < topology.switches(); ++number) {
    switches_.push_back(std::make_unique<Switch>(wiring_, number, homes[number], seed + number));
  }
  for (std::uint32_t number = 0; number < switches_.size(); ++number) {
    for (std::uint32_t port = 0; port < topology.ports_of(number); ++port) {
      const FarEnd end = topology.far_end({number, port});
      if (!end.is_node) switches_[number]->connect_switch(port, *switches_[end.id], end.port);
    }
  }
}

Picos Ethernet::min_latency(const Profile& profile) {
  return std::max(std::min(profile.nic.transmit, profile.fabric.switch_latency) + profile.fabric.cable, Picos(1));
}

void Ethernet::attach(const Attachment& node) {
  const auto number = static_cast<std::uint32_t>(ports_.size() / planes_);
  for (std::uint32_t plane = 0; plane < planes_; ++plane) {
    const SwitchPort at = wiring_.topology.of_node(number, plane);
    ports_.push_back(std::make_unique<NodePort>(wiring_, node, number, *switches_[at.of], at.number));
  }
}

// For a port with too little room: the time when half of its queue has left, unless it is paused meanwhile.
Picos Ethernet::room_from(std::uint32_t node, std::uint8_t plane, std::uint8_t priority) const {
  constexpr std::uint32_t kRoom = 65536;  // bytes per priority, 20 us of a 25 GbE line; assumed
  const NodePort& port = port_of(node, plane);
  const std::uint64_t waits = port.queued(priority);
  return waits < kRoom ? port.now() : port.now() + port.time_of(static_cast<std::uint32_t>(waits - kRoom / 2));
}

void Ethernet::send(Packet& packet) {
  packet.marked = false;
  port_of(packet.source_node, packet.port).push(packet);
}

void Ethernet::release(Packet& packet) {
  NodePort& port = port_of(packet.target_node, packet.port);
  port.free_room(packet);
  if (!packet.freed_by_writer) port.give_back(packet);
}

std::vector<PortTimes> Ethernet::port_times(std::uint32_t node) const {
  std::vector<PortTimes> times;
  for (std::uint32_t plane = 0; plane < planes_; ++plane) {
    const NodePort& port = port_of(node, plane);
    times.push_back({port.busy(), port.from_switch().busy()});
  }
  return times;
}

EthernetCounts Ethernet::ethernet_counts(std::uint32_t node) const {
  EthernetCounts counts;
  for (const auto& each : switches_) {
    counts.dropped_full_buffer += each->losses(node).full_buffer;
    counts.dropped_by_chance += each->losses(node).by_chance;
  }
  for (std::uint32_t plane = 0; plane < planes_; ++plane) {
    const NodePort& port = port_of(node, plane);
    counts.dropped_full_buffer += port.dropped();
    counts.rx_pauses += port.pauses();
    counts.rx_pause_ps += static_cast<std::uint64_t>(port.paused().count());
    counts.tx_pauses += port.pauses_sent();
  }
  return counts;
}

std::uint64_t Ethernet::deepest_queue(std::uint32_t node) const {
  std::uint64_t deepest = 0;
  for (std::uint32_t plane = 0; plane < planes_; ++plane) {
    deepest = std::max(deepest, port_of(node, plane).from_switch().deepest());
  }
  return deepest;
}

}  // namespace verbscope::sim
