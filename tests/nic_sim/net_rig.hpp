// An Ethernet network without NICs: nodes record arriving packets and their times.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <tuple>
#include <vector>

#include "nic_sim/host/thread.hpp"
#include "nic_sim/net/ethernet.hpp"
#include "nic_sim/profile/profile.hpp"
#include "nic_sim/time/quanta.hpp"

namespace verbscope::sim {

// 1 GB/s: 1 ns per byte. Latency: 70 ns from a node to its switch, 80 ns from a switch to the next hop.
inline Profile round_network() {
  Profile profile = load_profile("cx4");
  profile.wire.port_rate = BytesPerSecond{1e9};
  profile.nic.transmit = Nanos(20);
  profile.nic.input_buffer = Bytes(1 << 20);
  profile.fabric.cable = Nanos(50);
  profile.fabric.switch_latency = Nanos(30);
  profile.fabric.switches = {.buffer = Bytes(1 << 20),
                             .alpha = 1,
                             .pfc_xoff = Bytes(4000),
                             .pfc_xon = Bytes(2000),
                             .ecn_min = Bytes(0),
                             .ecn_max = Bytes(0),
                             .ecn_probability = 0,
                             .rack_nodes = 0,
                             .uplinks = 0,
                             .uplink_rate = {}};
  return profile;
}

struct Arrival {
  std::uint32_t node, source, sequence;
  Picos when;
  bool marked;
  auto operator<=>(const Arrival&) const = default;
};

class NetRig {
 public:
  // Nodes, then switches, are assigned to partitions round-robin. `keeps`: how long a node holds a packet.
  NetRig(const Profile& p, std::uint32_t nodes, std::size_t partitions = 1, Picos longest = Picos::max(),
         Picos keeps = Picos(0))
      : profile(p), mailbox_(homes(nodes, partitions), partitions), keeps_(keeps) {
    for (std::size_t i = 0; i < partitions; ++i) partitions_.emplace_back(packets_, i, partitions);
    std::vector<LogicalProcess*> processes;
    for (Partition& each : partitions_) processes.push_back(&each);
    quanta_ = std::make_unique<Quanta>(processes, mailbox_, std::min(longest, Ethernet::min_latency(p)), 1,
                                       [this](std::size_t partition) {
                                         for (Partition& other : partitions_)
                                           partitions_[partition].packets.collect_from(other.packets);
                                       });
    std::vector<SwitchHome> switches;
    for (std::uint32_t i = 0; i < switches_of(p, nodes); ++i) {
      Partition& home = partitions_[(nodes + i) % partitions];
      switches.push_back({&home.engine, &home.packets});
    }
    net = std::make_unique<Ethernet>(mailbox_, profile, nodes, switches, 1);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      Partition& home = partitions_[i % partitions];
      nodes_.push_back({this, i, &home, {}, {}});
      net->attach(
          {&nodes_.back(), &receive, &left_port, &has_joined, &home.engine, &home.packets, &nodes_.back().counts});
    }
  }

  // Schedules a packet of `bytes` on the wire.
  void send_at(Picos when, std::uint32_t from, std::uint32_t to, std::uint32_t bytes, std::uint8_t priority = 0,
               std::uint8_t plane = 0) {
    Order& order = orders_.emplace_back(Order{this, from, to, bytes, priority, plane, number_++});
    nodes_[from].home->engine.schedule(when, &send, &order);
  }

  // Runs until no packet is in flight.
  void run(Picos most = std::chrono::seconds(1)) { quanta_->settle(most); }

  std::vector<Arrival> arrivals() const {
    std::vector<Arrival> all;
    for (const Node& node : nodes_) all.insert(all.end(), node.arrivals.begin(), node.arrivals.end());
    return all;
  }
  std::uint64_t dropped() const {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const EthernetCounts counts = net->ethernet_counts(i);
      sum += counts.dropped_full_buffer + counts.dropped_by_chance;
    }
    return sum;
  }
  std::uint64_t sent() const { return orders_.size(); }

  Profile profile;
  std::unique_ptr<Ethernet> net;

 private:
  struct Node {
    NetRig* rig;
    std::uint32_t number;
    Partition* home;
    FabricCounts counts;
    std::vector<Arrival> arrivals;
  };
  struct Order {
    NetRig* rig;
    std::uint32_t from, to, bytes;
    std::uint8_t priority, plane;
    std::uint32_t number;
  };

  std::vector<std::size_t> homes(std::uint32_t nodes, std::size_t partitions) const {
    std::vector<std::size_t> all;
    for (std::uint32_t i = 0; i < nodes + switches_of(profile, nodes); ++i) all.push_back(i % partitions);
    return all;
  }

  static void send(void* object, std::uint64_t) {
    const Order& order = *static_cast<Order*>(object);
    Packet& packet = order.rig->nodes_[order.from].home->packets.take(0);
    packet.source_node = order.from;
    packet.target_node = order.to;
    packet.source_qp = packet.target_qp = 1;
    packet.port = order.plane;
    packet.priority = order.priority;
    packet.sequence = order.number;
    packet.wire_bytes = order.bytes;
    packet.completes = packet.counted = false;
    order.rig->net->send(packet);
  }
  static void receive(void* object, Packet& packet) {
    Node& node = *static_cast<Node*>(object);
    Engine& engine = node.home->engine;
    node.arrivals.push_back({node.number, packet.source_node, packet.sequence, engine.now(), packet.marked});
    engine.schedule(engine.now() + node.rig->keeps_, &take_in, node.rig, as_argument(packet));
  }
  static void take_in(void* object, std::uint64_t packet) {
    static_cast<NetRig*>(object)->net->release(as_packet(packet));
  }
  static void left_port(void*, const Packet&, Picos) {}
  static bool has_joined(void*, const Packet&) { return false; }

  Mailbox mailbox_;
  Picos keeps_;
  PacketMemory packets_{Bytes(4096), 256};
  std::deque<Partition> partitions_;
  std::unique_ptr<Quanta> quanta_;
  std::deque<Node> nodes_;
  std::deque<Order> orders_;
  std::uint32_t number_ = 0;
};

}  // namespace verbscope::sim
