// A node's port on an Ethernet network: the sending side, and the input buffer.
#pragma once

#include <cstdint>

#include "nic_sim/net/fabric.hpp"
#include "nic_sim/net/ingress.hpp"
#include "nic_sim/net/out_port.hpp"
#include "nic_sim/net/switch.hpp"
#include "nic_sim/net/wiring.hpp"

namespace verbscope::sim {

class NodePort final : public OutPort {
 public:
  // Connects itself to port `at` of `neighbour`.
  NodePort(const Wiring& wiring, const Attachment& node, std::uint32_t number, Switch& neighbour, std::uint32_t at);

  // The node has processed a packet from this port.
  void free_room(const Packet& packet) {
    used_ -= packet.wire_bytes;
    input_.gave(packet.priority, packet.wire_bytes, engine_.now());
  }
  void give_back(Packet& packet) { node_.packets->give_back(packet); }

  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t asked_pauses() const { return input_.pauses(); }
  // The switch's output to this port.
  const OutPort& from_switch() const { return neighbour_.output(at_); }

 private:
  static void arrives(void* port, std::uint64_t packet);
  void begins(Packet& packet, Picos begin, Picos end) override;

  const Wiring& wiring_;
  Attachment node_;
  std::uint32_t number_;
  Switch& neighbour_;
  std::uint32_t at_;
  Ingress input_;
  std::uint64_t used_ = 0;  // bytes of the input buffer in use
  std::uint64_t dropped_ = 0;
};

}  // namespace verbscope::sim
