#include "nic_sim/net/node_port.hpp"

namespace verbscope::sim {

NodePort::NodePort(const Wiring& wiring, const Attachment& node, std::uint32_t number, Switch& neighbour,
                   std::uint32_t at)
    : OutPort(*node.engine, node.packets->memory(), wiring.port_rate),
      wiring_(wiring),
      node_(node),
      number_(number),
      neighbour_(neighbour),
      at_(at),
      input_(wiring.mailbox, *wiring.of_nodes, number, wiring.id_of(neighbour.number()), neighbour.output(at),
             wiring.pause_way(wiring.port_rate, wiring.transmit)) {
  neighbour.plug_in_node(at, number, &arrives, this, *this);
}

void NodePort::begins(Packet& packet, Picos begin, Picos end) {
  if (packet.counted && packet.kind == Packet::Kind::request) ++node_.counts->messages_sent;
  if (packet.completes) node_.left_port(node_.node, packet, end);
  packet.ingress = at_;
  const Picos ready = neighbour_.ready(packet, begin, end, wiring_.transmit + wiring_.cable);
  wiring_.mailbox.send(number_, wiring_.id_of(neighbour_.number()), ready, &Switch::arrives, &neighbour_,
                       as_argument(packet));
}

void NodePort::arrives(void* object, std::uint64_t argument) {
  NodePort& port = *static_cast<NodePort*>(object);
  Packet& packet = as_packet(argument);
  if (!port.wiring_.of_nodes->admits(port.used_, port.used_, packet.wire_bytes)) {
    ++port.dropped_;
    return port.give_back(packet);
  }
  port.used_ += packet.wire_bytes;
  port.input_.took(packet.priority, packet.wire_bytes, port.engine_.now());
  port.node_.receive(port.node_.node, packet);
}

}  // namespace verbscope::sim
