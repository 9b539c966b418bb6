// What carries packets from node to node. A port of a node reaches only the same port of other nodes. There is one kind
// for InfiniBand, which never loses a packet for want of room (credit_fabric.hpp), and one for Ethernet, which may
// (ethernet.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/net/counts.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"
#include "nic_sim/time/mailbox.hpp"

namespace verbscope::sim {

// A node gives this to the fabric when it is attached: its ends of two calls, and what the fabric needs of it. All of
// it outlives the fabric's last event.
struct Attachment {
  void* node;  // the first argument of both functions
  // A packet has arrived at one of the node's ports, whose room it takes until Fabric::taken_in or done_with.
  void (*receive)(void* node, Packet& packet);
  // A packet with Packet::completes will have left its port at `when`.
  void (*left_port)(void* node, const Packet& packet, Picos when);
  Engine* engine;
  PacketPool* packets;  // the pool of the node's partition
  FabricCounts* counts;
};

// Where a switch is simulated.
struct SwitchHome {
  Engine* engine;
  PacketPool* packets;
};

// How long a port was in use in each direction.
struct PortTimes {
  Picos out;
  Picos in;
};

class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;

  // Nodes are numbered in the order in which they are attached.
  virtual void attach(const Attachment& node) = 0;
  virtual std::size_t nodes() const = 0;

  // When a port of the node has room for a packet of the priority, as far as can be told: the present where it has. A
  // port takes more all the same. InfiniBand's always has.
  virtual Picos room_from(std::uint32_t, std::uint8_t, std::uint8_t) const { return Picos(0); }
  // Sends from the packet's source by its port; the target receives it.
  virtual void send(Packet& packet) = 0;

  // The target has taken the packet in: its room is free again; the packet is the caller's to give back.
  virtual void taken_in(const Packet& packet) = 0;
  // The target has handled the packet: its room is free again, and so is the packet.
  virtual void done_with(Packet& packet) = 0;

  // The times of each port of a node so far.
  virtual std::vector<PortTimes> port_times(std::uint32_t node) const = 0;
  // What was counted of a node so far; zeros on InfiniBand.
  virtual EthernetCounts ethernet_counts(std::uint32_t) const { return {}; }
  // The longest queue, in bytes, that waited in switches for a port of this node so far; 0 on InfiniBand, whose packets
  // wait at their sources.
  virtual std::uint64_t deepest_queue(std::uint32_t) const { return 0; }
};

// What is to be known of a network before there is one. Switches that are simulated by themselves have numbers in the
// mailbox behind those of the nodes.
std::uint32_t switches_of(const Profile& profile, std::uint32_t nodes);
// What one node or switch does is known at no other earlier.
Picos shortest_way(const Profile& profile);

// `switches`: as many as switches_of yields.
std::unique_ptr<Fabric> make_fabric(Mailbox& mailbox, const Profile& profile, std::uint32_t nodes,
                                    const std::vector<SwitchHome>& switches, std::uint64_t seed);

}  // namespace verbscope::sim
