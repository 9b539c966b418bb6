// InfiniBand: ports, cables and one switch. Flow control is by credit: a packet goes on from the switch only when the
// target's input buffer has room for it, so nothing is lost for want of room; until then it stays in the switch. A port
// of which as much is held there as it sends in a way there and back stops, and what cannot depart holds up what is
// behind it. Outputs of the switch share nothing, so each is simulated with its node.
#pragma once

#include <vector>

#include "nic_sim/link/serial_resource.hpp"
#include "nic_sim/net/fabric.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/profile/random.hpp"

namespace verbscope::sim {

class CreditFabric final : public Fabric {
 public:
  CreditFabric(Mailbox& mailbox, const Profile& profile, std::uint64_t seed);

  void attach(const Attachment& node) override;
  std::size_t nodes() const override { return ports_.size() / ports_per_node_; }

  // From a port's first bit to the switch's output: pipeline of the sender, cable, switch. What one node does is known
  // at no other earlier.
  static Picos way_to_switch(const Profile& profile);

  void send(Packet& packet) override;
  void taken_in(const Packet& packet) override { free_room(target(packet), packet.wire_bytes); }
  void done_with(Packet& packet) override;
  std::vector<PortTimes> port_times(std::uint32_t node) const override;

 private:
  // Bytes that an output of the switch holds of a port: now, and as the port was told last.
  struct Held {
    std::int64_t now = 0;
    std::int64_t told = 0;
  };
  // A node's port, and the switch's output to it.
  struct alignas(64) Port {
    Port(CreditFabric& fabric, const Attachment& node, std::uint64_t seed);

    CreditFabric* fabric;
    Engine* engine;
    SerialResource out;               // to the switch
    PacketQueue waiting;              // to depart
    std::int64_t held_elsewhere = 0;  // bytes that departed here and are held in the switch, as is known here
    bool departs_later = false;       // an event will let packets depart
    Attachment node;
    SerialResource in;            // from the switch
    std::uint64_t room;           // bytes of input buffer without a packet or a promise
    PacketQueue held;             // in the switch, for want of room
    std::vector<Held> held_from;  // what waits of these packets, by the node it came from
    Random random;
  };

  static void at_switch(void* fabric, std::uint64_t packet);
  static void at_target(void* fabric, std::uint64_t packet);
  static void learns(void* port, std::uint64_t bytes);
  static void port_has_time(void* port, std::uint64_t);
  Port& port_of(std::uint32_t node, std::uint8_t port) { return ports_[node * ports_per_node_ + port]; }
  Port& source(const Packet& packet) { return port_of(packet.source_node, packet.port); }
  Port& target(const Packet& packet) { return port_of(packet.target_node, packet.port); }
  bool stopped(const Port& port) const { return port.held_elsewhere >= most_held_; }
  bool may_depart(const Port& port) const;
  void depart(Port& port, Packet& packet);
  void depart_all(Port& port);
  void hold(Port& to, Packet& packet);
  void held_changes(Port& to, const Packet& packet, std::int64_t bytes);
  void forward(Port& to, Packet& packet);
  void free_room(Port& port, std::uint64_t bytes);
  Picos duration(const Packet& packet) const { return transfer_time_(Bytes(packet.wire_bytes)); }

  Mailbox& mailbox_;
  std::size_t ports_per_node_;
  std::uint64_t input_buffer_;
  TransferTime transfer_time_;  // at the rate that packets can have
  Picos to_switch_;
  std::int64_t most_held_;  // bytes of a port in the switch
  Picos cable_;
  double loss_probability_;
  std::uint64_t seed_;
  std::vector<Port> ports_;
};

}  // namespace verbscope::sim
