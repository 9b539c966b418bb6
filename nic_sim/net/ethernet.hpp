// Ethernet: switches, each with one packet buffer that the queues of all its outputs share, and the ports of nodes. A
// packet without room is dropped; with flow control its sender is paused before. A switch is simulated like a node, in
// a partition.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nic_sim/net/fabric.hpp"
#include "nic_sim/net/port.hpp"
#include "nic_sim/net/switch.hpp"
#include "nic_sim/net/topology.hpp"

namespace verbscope::sim {

// A node's port on an Ethernet network: the sending side, and the input buffer.
class NodePort final : public OutPort {
 public:
  // Connects itself to port `at` of `neighbour`.
  NodePort(const Wiring& wiring, const Attachment& node, std::uint32_t number, Switch& neighbour, std::uint32_t at);

  // The node has processed a packet from this port.
  void free_room(const Packet& packet) {
    used_ -= packet.wire_bytes;
    input_.left(packet.priority, packet.wire_bytes, engine_.now());
  }
  void give_back(Packet& packet) { node_.packets->give_back(packet); }

  std::uint64_t dropped() const { return dropped_; }
  std::uint64_t pauses_sent() const { return input_.pauses(); }
  // The switch's output to this port.
  const OutPort& from_switch() const { return neighbour_.output(at_); }

 private:
  static void arrives(void* port, std::uint64_t packet);
  void send_begins(Packet& packet, Picos begin, Picos end) override;
  void to_switch(Packet& packet, Picos begin, Picos end);
  [[gnu::noinline]] void replicate(Packet& packet, Picos begin, Picos end);  // rare

  const Wiring& wiring_;
  Attachment node_;
  std::uint32_t number_;
  Switch& neighbour_;
  std::uint32_t at_;
  Ingress input_;
  std::uint64_t used_ = 0;  // bytes of the input buffer in use
  std::uint64_t dropped_ = 0;
};

class Ethernet final : public Fabric {
 public:
  Ethernet(Mailbox& mailbox, const Profile& profile, std::uint32_t nodes, const std::vector<SwitchHome>& homes,
           std::uint64_t seed);

  // Shortest time from a node's unit to its switch, or from a switch to its neighbour.
  static Picos min_latency(const Profile& profile);

  void attach(const Attachment& node) override;
  std::size_t nodes() const override { return wiring_.nodes; }
  Picos room_from(std::uint32_t node, std::uint8_t plane, std::uint8_t priority) const override;
  void send(Packet& packet) override;
  void release(Packet& packet) override;
  std::vector<PortTimes> port_times(std::uint32_t node) const override;
  EthernetCounts ethernet_counts(std::uint32_t node) const override;
  std::uint64_t deepest_queue(std::uint32_t node) const override;

  const std::vector<std::unique_ptr<Switch>>& switches() const { return switches_; }

 private:
  NodePort& port_of(std::uint32_t node, std::uint32_t plane) const { return *ports_[node * planes_ + plane]; }

  Wiring wiring_;
  std::uint32_t planes_;
  std::vector<std::unique_ptr<Switch>> switches_;
  std::vector<std::unique_ptr<NodePort>> ports_;  // [node][plane]
};

}  // namespace verbscope::sim
