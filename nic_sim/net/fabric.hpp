// The network between nodes. A port of a node reaches only the same port of other nodes. InfiniBand never loses a
// packet for lack of room (credit_fabric.hpp); Ethernet may (ethernet.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "nic_sim/link/packet_pool.hpp"
#include "nic_sim/net/counts.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/engine.hpp"
#include "nic_sim/time/logical_process.hpp"

namespace verbscope::sim {

// The interface of a node to the fabric. All members outlive the fabric's last event.
struct Attachment {
  void* node;  // the first argument of both functions
  // A packet has arrived at a port of the node. It uses room there until Fabric::release.
  void (*receive)(void* node, Packet& packet);
  // A packet with Packet::completes leaves its port at `when`.
  void (*left_port)(void* node, const Packet& packet, Picos when);
  // True if a QP at the packet's port is attached to its multicast group.
  bool (*has_joined)(void* node, const Packet& packet);
  Engine* engine;
  PacketPool* packets;  // the pool of the node's partition
  FabricCounts* counts;
};

// The partition in which a switch is simulated.
struct SwitchHome {
  Engine* engine;
  PacketPool* packets;
};

// Busy time of a port in each direction.
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

  // Nodes get numbers in the order of attachment.
  virtual void attach(const Attachment& node) = 0;
  virtual std::size_t nodes() const = 0;

  // Estimated time at which a port of the node has room for a packet of the priority; not in the future if it has room
  // now. send() accepts packets without room, too. InfiniBand: always now.
  virtual Picos room_from(std::uint32_t, std::uint8_t, std::uint8_t) const { return Picos(0); }
  // Sends a packet from its source port to its target. One to kEveryNode leaves the port once; its first switch makes a
  // copy for each node, which is a packet of its own from there on.
  virtual void send(Packet& packet) = 0;

  // The cables of a node are cut, or joined again. Meanwhile packets from and to the node are lost where they arrive.
  // Call while no node runs.
  void cut(std::uint32_t node) { cut_.insert(node); }
  void join(std::uint32_t node) { cut_.erase(node); }
  bool is_lost(const Packet& packet) const {
    return !cut_.empty() && (cut_.contains(packet.source_node) || cut_.contains(packet.target_node));
  }

  // The target has processed the packet: frees its room and the packet, unless PayloadWriter frees the packet.
  virtual void release(Packet& packet) = 0;

  // Busy times of each port of a node so far.
  virtual std::vector<PortTimes> port_times(std::uint32_t node) const = 0;
  // Counters of a node so far; zeros on InfiniBand.
  virtual EthernetCounts ethernet_counts(std::uint32_t) const { return {}; }
  // Longest queue in switches for a port of this node so far, in bytes; 0 on InfiniBand.
  virtual std::uint64_t deepest_queue(std::uint32_t) const { return 0; }

 private:
  std::set<std::uint32_t> cut_;  // nodes
};

// Number of switches that are simulated by themselves. Their numbers in the mailbox follow those of the nodes.
std::uint32_t switches_of(const Profile& profile, std::uint32_t nodes);
// Shortest time until an action of a node or switch affects another one.
Picos min_latency(const Profile& profile);

// `switches`: one entry for each of switches_of().
std::unique_ptr<Fabric> make_fabric(Mailbox& mailbox, const Profile& profile, std::uint32_t nodes,
                                    const std::vector<SwitchHome>& switches, std::uint64_t seed);

}  // namespace verbscope::sim
