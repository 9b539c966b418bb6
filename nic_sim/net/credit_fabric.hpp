// InfiniBand: ports, cables and one switch, with credits. The switch forwards a packet when the input buffer of the
// target has room, and holds it until then, so that no packet is lost for lack of room. A port stops while the switch
// holds as many of its bytes as it sends in one round trip to the switch; packets behind a stopped one wait. Outputs of
// the switch share nothing, so that each is simulated with its node.
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

  // Time from a port to the switch's output: pipeline of the sender, cable, switch. No node affects another one
  // earlier.
  static Picos latency_to_switch(const Profile& profile);

  void send(Packet& packet) override;
  void release(Packet& packet) override;
  std::vector<PortTimes> port_times(std::uint32_t node) const override;

 private:
  // Bytes of one port that an output of the switch holds: now, and as last reported to the port.
  struct Held {
    std::int64_t now = 0;
    std::int64_t reported = 0;
  };
  // A node's port, and the output of the switch to it.
  struct alignas(64) Port {
    Port(CreditFabric& fabric, const Attachment& node, std::uint64_t seed);

    CreditFabric* fabric;
    Engine* engine;
    SerialResource out;               // to the switch
    PacketQueue waiting;              // to depart
    std::int64_t held_elsewhere = 0;  // bytes of this port that the switch holds, as last reported
    bool departs_later = false;       // an event is scheduled for waiting packets
    Attachment node;
    SerialResource in;            // from the switch
    std::uint64_t room;           // free bytes of the input buffer that are not promised
    PacketQueue held;             // in the switch, for lack of room
    std::vector<Held> held_from;  // bytes of `held`, by source node
    Random random;
  };

  static void at_switch(void* fabric, std::uint64_t packet);
  static void copy_at_switch(void* fabric, std::uint64_t packet);
  static void at_target(void* fabric, std::uint64_t packet);
  static void held_reported(void* port, std::uint64_t bytes);
  static void port_is_free(void* port, std::uint64_t);
  Port& port_of(std::uint32_t node, std::uint8_t port) { return ports_[node * ports_per_node_ + port]; }
  Port& source(const Packet& packet) { return port_of(packet.source_node, packet.port); }
  Port& target(const Packet& packet) { return port_of(packet.target_node, packet.port); }
  bool stopped(const Port& port) const { return port.held_elsewhere >= max_held_; }
  bool may_depart(const Port& port) const;
  void depart(Port& port, Packet& packet);
  [[gnu::noinline]] void replicate(const Port& port, Packet& packet, Picos when);  // rare
  void depart_all(Port& port);
  void hold(Port& to, Packet& packet);
  void report_held(Port& to, const Packet& packet, std::int64_t bytes);
  void forward(Port& to, Packet& packet);
  void free_room(Port& port, std::uint64_t bytes);
  Picos duration(const Packet& packet) const { return transfer_time_(Bytes(packet.wire_bytes)); }

  Mailbox& mailbox_;
  std::size_t ports_per_node_;
  std::uint64_t input_buffer_;
  TransferTime transfer_time_;  // at the rate available to packets
  Picos to_switch_;
  std::int64_t max_held_;  // bytes of a port in the switch at which it stops
  Picos cable_;
  double loss_probability_;
  std::uint64_t seed_;
  std::vector<Port> ports_;
};

}  // namespace verbscope::sim
