// Ports, cables and the switch. A port of a node reaches only the same port of other nodes. Flow control is by credit:
// a packet leaves its port only when the target's input buffer has room for it, so nothing is lost for want of room,
// and what cannot leave holds up what is behind it.
#pragma once

#include <vector>

#include "nic_sim/counts.hpp"
#include "nic_sim/engine.hpp"
#include "nic_sim/packet.hpp"
#include "nic_sim/pcie_bus.hpp"
#include "nic_sim/profile.hpp"
#include "nic_sim/random.hpp"

namespace verbscope::sim {

class Nic;

class Fabric {
 public:
  Fabric(Engine& engine, const Profile& profile, std::uint64_t seed);
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Nodes are numbered in the order in which they are attached.
  void attach(Nic& nic);

  PacketPool& packets() { return packets_; }
  std::size_t nodes() const { return ports_.size() / ports_per_node_; }

  // Sends from the packet's source by its port; the target's Nic gets it. Packet::completes: the source's requester is
  // told when it has left.
  void send(Packet& packet);

  // Adds how long each port of a node was in use.
  void add_port_times(std::uint32_t node, UsageTimes& times) const;

  // The target has taken the packet in: its room is free again; the packet is the caller's to give back.
  void taken_in(const Packet& packet) { free_room(target(packet), packet.wire_bytes); }
  // The target has handled the packet: its room is free again, and so is the packet.
  void done_with(Packet& packet);

 private:
  struct Port {
    Nic* nic = nullptr;
    PacketQueue waiting;         // to leave, the first of them without credit
    SerialResource out;          // to the switch
    SerialResource in;           // from the switch
    std::uint64_t room = 0;      // bytes of input buffer without a packet or a promise
    std::vector<Port*> held_up;  // ports whose first packet waits for room here, in order
  };

  static void at_switch(void* fabric, std::uint64_t packet);
  static void at_target(void* fabric, std::uint64_t packet);
  Port& source(const Packet& packet) { return ports_[packet.source_node * ports_per_node_ + packet.port]; }
  Port& target(const Packet& packet) { return ports_[packet.target_node * ports_per_node_ + packet.port]; }
  bool leave(Port& port, Packet& packet);
  void free_room(Port& port, std::uint64_t bytes);
  Picos duration(const Packet& packet) const { return transfer_time_(Bytes(packet.wire_bytes)); }

  Engine& engine_;
  std::size_t ports_per_node_;
  std::uint64_t input_buffer_;
  TransferTime transfer_time_;  // at the rate that packets can have
  Picos to_switch_;             // from a port's first bit to the switch's output: pipeline of the sender, cable, switch
  Picos cable_;
  double loss_probability_;
  Random random_;
  PacketPool packets_;
  std::vector<Port> ports_;
};

}  // namespace verbscope::sim
