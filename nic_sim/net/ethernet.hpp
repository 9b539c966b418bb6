// Ethernet: switches, each with one packet buffer that the queues of all its outputs share, and the ports of nodes. A
// packet without room is dropped; with flow control its sender is paused before. A switch is simulated like a node, in
// a partition.
#pragma once

#include <memory>
#include <vector>

#include "nic_sim/net/fabric.hpp"
#include "nic_sim/net/node_port.hpp"
#include "nic_sim/net/switch.hpp"
#include "nic_sim/net/wiring.hpp"

namespace verbscope::sim {

class Ethernet final : public Fabric {
 public:
  Ethernet(Mailbox& mailbox, const Profile& profile, std::uint32_t nodes, const std::vector<SwitchHome>& homes,
           std::uint64_t seed);

  // Shortest time from a node's unit to its switch, or from a switch to its neighbour.
  static Picos shortest_way(const Profile& profile);

  void attach(const Attachment& node) override;
  std::size_t nodes() const override { return wiring_.nodes; }
  Picos room_from(std::uint32_t node, std::uint8_t plane, std::uint8_t priority) const override;
  void send(Packet& packet) override;
  void taken_in(const Packet& packet) override;
  void done_with(Packet& packet) override;
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
