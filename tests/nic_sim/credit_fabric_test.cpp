// InfiniBand's fabric without NICs: its calls to nodes, and its services for them.
#include "nic_sim/net/credit_fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace verbscope::sim {
namespace {

using testing::ElementsAre;
using testing::Pair;

// 1 GB/s: 1 ns per byte. Latency: 100 ns from a port to the switch, 50 ns from there.
Profile round_fabric_numbers() {
  Profile profile = load_profile("cx3");
  profile.wire.port_rate = BytesPerSecond{1e9};
  profile.nic.transmit = Nanos(20);
  profile.nic.input_buffer = Bytes(4096);
  profile.fabric = {
      .cable = Nanos(50), .switch_latency = Nanos(30), .port_share = 1, .packet_gap = Bytes(0), .loss_probability = 0};
  return profile;
}

// Nodes that record packets and times.
struct Net {
  struct Node {
    explicit Node(Net& n) : net(&n) {}
    Net* net;
    FabricCounts counts;
    std::vector<std::pair<std::uint32_t, Picos>> received;  // sequence number, time
    std::vector<std::pair<std::uint32_t, Picos>> left;
  };

  explicit Net(const Profile& profile) : fabric(mailbox, profile, 1) {
    for (Node& node : nodes) {
      fabric.attach({&node, &Net::receive, &Net::left_port, &Net::has_joined, &engine, &packets, &node.counts});
    }
  }
  static void receive(void* object, Packet& packet) {
    Node& node = *static_cast<Node*>(object);
    node.received.emplace_back(packet.sequence, node.net->engine.now());
    node.net->fabric.release(packet);
  }
  static bool has_joined(void*, const Packet&) { return false; }
  static void left_port(void* object, const Packet& packet, Picos when) {
    static_cast<Node*>(object)->left.emplace_back(packet.sequence, when);
  }
  // Sends a packet of 100 bytes from node 0 to node 1.
  void send(std::uint32_t sequence, bool completes = false) {
    Packet& packet = packets.take(64);
    packet.source_node = 0;
    packet.target_node = 1;
    packet.port = 0;
    packet.sequence = sequence;
    packet.wire_bytes = 100;
    packet.completes = completes;
    fabric.send(packet);
  }
  void run() {
    for (int round = 0; round < 100; ++round) {
      mailbox.deliver(0, engine);
      while (engine.step()) {
      }
    }
  }

  Engine engine;
  PacketMemory memory{Bytes(4096), 1};
  PacketPool packets{memory, 0, 1};
  Mailbox mailbox{{0, 0}, 1};
  CreditFabric fabric;
  Node nodes[2]{Node(*this), Node(*this)};
};

TEST(Fabric, DeliversPacketToItsTarget) {
  Net net(round_fabric_numbers());
  net.send(7);
  net.run();
  // Cut-through: 100 ns to the switch, 100 ns for the bytes, 50 ns of cable.
  EXPECT_THAT(net.nodes[1].received, ElementsAre(Pair(7u, Picos(Nanos(250)))));
  EXPECT_TRUE(net.nodes[0].received.empty());
}

TEST(Fabric, PacketsOfPortLeaveInSequence) {
  Net net(round_fabric_numbers());
  net.send(1);
  net.send(2);
  net.run();
  EXPECT_THAT(net.nodes[1].received, ElementsAre(Pair(1u, Picos(Nanos(250))), Pair(2u, Picos(Nanos(350)))));
  EXPECT_EQ(net.fabric.port_times(0).front().out, Picos(Nanos(200)));
  EXPECT_EQ(net.fabric.port_times(1).front().in, Picos(Nanos(200)));
}

TEST(Fabric, ReportsDepartureOfPacketThatCompletes) {
  Net net(round_fabric_numbers());
  net.send(1);
  net.send(2, true);
  EXPECT_THAT(net.nodes[0].left, ElementsAre(Pair(2u, Picos(Nanos(200)))));
}

TEST(Fabric, CountsLossesOfTargetAndFreesPackets) {
  Profile profile = round_fabric_numbers();
  profile.fabric.loss_probability = 1;
  Net net(profile);
  net.send(1);
  net.run();
  EXPECT_TRUE(net.nodes[1].received.empty());
  EXPECT_EQ(net.nodes[1].counts.dropped_by_switch, 1u);
  net.send(2);
  EXPECT_EQ(net.packets.size(), 1u);  // the memory of the lost packet was reused
}

}  // namespace
}  // namespace verbscope::sim
