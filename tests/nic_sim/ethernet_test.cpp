// Ethernet without NICs: times computed by hand, queue disciplines, and properties of random networks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "nic_sim/link/addresses.hpp"
#include "nic_sim/profile/random.hpp"
#include "tests/nic_sim/net_rig.hpp"

namespace verbscope::sim {
namespace {

constexpr Picos ns(std::int64_t n) {
  return Nanos(n);
}

TEST(Ethernet, DeliversPacketToItsTarget) {
  NetRig rig(round_network(), 2);
  rig.send_at(ns(0), 0, 1, 1000);
  rig.run();
  // Cut-through: the first bit is at the switch after 70 ns; the last one is at the node 1000 + 80 ns later.
  ASSERT_EQ(rig.arrivals().size(), 1u);
  EXPECT_EQ(rig.arrivals().front().when, ns(70 + 80 + 1000));
  EXPECT_EQ(rig.net->port_times(0).front().out, ns(1000));
  EXPECT_EQ(rig.net->port_times(1).front().in, ns(1000));
}

TEST(Ethernet, SlowLineDelaysFastLineButNotReverse) {
  Profile profile = round_network();
  profile.fabric.switches.rack_nodes = 1;
  profile.fabric.switches.uplinks = 1;
  profile.fabric.switches.uplink_rate = BytesPerSecond{4e9};
  NetRig rig(profile, 2);
  rig.send_at(ns(0), 0, 1, 1000);
  rig.run();
  // The packet takes 250 ns on the uplink, so it starts there 750 ns after its first bit arrived. The spine and the
  // last switch cut through, 80 ns each.
  EXPECT_EQ(rig.arrivals().front().when, ns(70 + 750 + 80 + 80 + 80 + 1000));
}

TEST(Ethernet, HigherPriorityLeavesFirst) {
  NetRig rig(round_network(), 2);
  for (int i = 0; i < 3; ++i) rig.send_at(ns(0), 0, 1, 1000, 0);
  rig.send_at(ns(0), 0, 1, 100, 5);
  rig.run();
  std::vector<Arrival> in_order = rig.arrivals();
  EXPECT_EQ(in_order[1].sequence, 3u);  // after the packet that was on the line
}

TEST(Ethernet, QueueUsesAtMostItsShareOfFreeBuffer) {
  Profile profile = round_network();
  profile.fabric.switches.buffer = Bytes(10'000);
  profile.fabric.switches.alpha = 0.5;
  NetRig rig(profile, 3);
  // Two nodes send at full rate to one port. A queue accepts packets while q < (B - q) / 2, so while q < B / 3 = 3333
  // bytes: four packets of 1000.
  for (int i = 0; i < 30; ++i) {
    for (std::uint32_t from : {0u, 1u}) rig.send_at(ns(0), from, 2, 1000);
  }
  rig.run();
  EXPECT_EQ(rig.net->deepest_queue(2), 4000u);
  // One packet leaves while two arrive, so about every second one is lost.
  EXPECT_NEAR(static_cast<double>(rig.dropped()), 30 - 4, 3);
  EXPECT_EQ(rig.arrivals().size() + rig.dropped(), rig.sent());
}

TEST(Ethernet, PfcPausesBothSendersWithoutLoss) {
  Profile profile = round_network();
  profile.fabric.flow_control = FlowControl::pfc;
  profile.fabric.switches.buffer = Bytes(100'000);
  NetRig rig(profile, 3);
  for (int i = 0; i < 200; ++i) {
    for (std::uint32_t from : {0u, 1u}) rig.send_at(ns(0), from, 2, 1000);
  }
  rig.run();
  EXPECT_EQ(rig.dropped(), 0u);
  EXPECT_EQ(rig.arrivals().size(), 400u);
  for (std::uint32_t from : {0u, 1u}) {
    const EthernetCounts counts = rig.net->ethernet_counts(from);
    EXPECT_GT(counts.rx_pauses, 10u);
    // The port forwards half of what both send. A packet that is on the line when a pause arrives is still sent.
    const double paused = static_cast<double>(counts.rx_pause_ps) / 400e6;
    EXPECT_GT(paused, 0.45);
    EXPECT_LT(paused, 0.5 + static_cast<double>(counts.rx_pauses) / 400);
  }
  // Per sender: XOFF, one packet that crosses it, bytes until the pause arrives (30 + 50 + 84 ns), the packet that the
  // sender has begun, and 70 ns of latency.
  EXPECT_LE(rig.net->deepest_queue(2), 2u * (4000 + 1000 + 164 + 1000 + 70));
}

TEST(Ethernet, FullNodePausesSwitchWhichPausesItsSenders) {
  Profile profile = round_network();
  profile.fabric.flow_control = FlowControl::pfc;
  profile.nic.input_buffer = Bytes(8000);
  NetRig slow(profile, 2, 1, Picos::max(), ns(20'000));
  for (int i = 0; i < 100; ++i) slow.send_at(ns(0), 0, 1, 1000);
  slow.run();
  EXPECT_EQ(slow.dropped(), 0u);
  EXPECT_GT(slow.net->ethernet_counts(1).tx_pauses, 5u);
  EXPECT_GT(slow.net->ethernet_counts(0).rx_pauses, 0u);
  profile.fabric.flow_control = FlowControl::tail_drop;
  NetRig lossy(profile, 2, 1, Picos::max(), ns(20'000));
  for (int i = 0; i < 100; ++i) lossy.send_at(ns(0), 0, 1, 1000);
  lossy.run();
  EXPECT_GT(lossy.net->ethernet_counts(1).dropped_full_buffer, 50u);
}

// A victim: its path crosses a switch whose port to another node is congested.
TEST(Ethernet, PauseBlocksPacketsForOtherNodes) {
  Profile profile = round_network();
  profile.fabric.flow_control = FlowControl::pfc;
  NetRig rig(profile, 4);
  for (int i = 0; i < 100; ++i) {
    rig.send_at(ns(0), 0, 2, 1000);
    rig.send_at(ns(0), 1, 2, 1000);
  }
  rig.send_at(ns(1), 0, 3, 1000);                  // after 100 paused packets
  rig.send_at(ns(1), 1, 3, 1000, /*priority=*/1);  // of a priority that is not paused
  rig.run();
  Picos behind{0}, beside{0};
  for (const Arrival& each : rig.arrivals()) {
    if (each.node == 3) (each.source == 0 ? behind : beside) = each.when;
  }
  EXPECT_GT(behind, ns(190'000));
  EXPECT_LT(beside, ns(3'500));
}

TEST(Ethernet, MarksByQueueLength) {
  Profile profile = round_network();
  profile.fabric.switches.ecn_min = Bytes(10'000);
  profile.fabric.switches.ecn_max = Bytes(30'000);
  profile.fabric.switches.ecn_probability = 0.2;
  NetRig rig(profile, 3);
  for (int i = 0; i < 60; ++i) {
    for (std::uint32_t from : {0u, 1u}) rig.send_at(ns(0), from, 2, 1000);
  }
  rig.run();
  // The queue grows by a packet per microsecond to 60 and shrinks again. It is above K_max for 30 + 30 packets, and
  // between K_min and K_max for 20 + 20, of which a tenth is marked on average.
  const auto all = rig.arrivals();
  const auto marked = std::ranges::count_if(all, &Arrival::marked);
  EXPECT_GE(marked, 58);
  EXPECT_LE(marked, 70);
}

TEST(Ethernet, PriorityFollowsTrafficClassOrServiceLevel) {
  ibv_ah_attr path{};
  path.sl = 11;
  EXPECT_EQ(priority_of(LinkType::roce_v2, path), 3);  // the three lowest bits
  path.is_global = 1;
  path.grh.traffic_class = 46 << 2;  // DSCP 46, expedited forwarding
  EXPECT_EQ(priority_of(LinkType::roce_v2, path), 5);
  EXPECT_EQ(priority_of(LinkType::infiniband, path), 0);
}

struct Drawn {
  Profile profile;
  std::uint32_t nodes;
  Picos keeps;
};

Drawn draw(Random& random) {
  Drawn out{round_network(), static_cast<std::uint32_t>(2 + random.below(20)),
            ns(static_cast<int>(random.below(3000)))};
  Profile& p = out.profile;
  p.wire.ports = static_cast<int>(1 + random.below(2));
  p.nic.input_buffer = Bytes(5000 + random.below(100'000));
  p.nic.transmit = ns(static_cast<int>(random.below(500)));
  p.fabric.switch_latency = ns(static_cast<int>(random.below(500)));
  p.fabric.cable = ns(static_cast<int>(1 + random.below(100)));
  p.fabric.loss_probability = random.below(4) == 0 ? 0.05 : 0;
  p.fabric.flow_control = random.below(2) == 0 ? FlowControl::pfc : FlowControl::tail_drop;
  SwitchProfile& s = p.fabric.switches;
  s.buffer = Bytes(5000 + random.below(400'000));
  s.alpha = 0.125 * static_cast<double>(1 + random.below(64));
  s.pfc_xoff = Bytes(2000 + random.below(20'000));
  s.pfc_xon = Bytes(random.below(s.pfc_xoff.value));
  s.ecn_max = Bytes(random.below(50'000));
  s.ecn_min = Bytes(random.below(s.ecn_max.value + 1));
  s.ecn_probability = random.uniform();
  s.rack_nodes = static_cast<std::uint32_t>(random.below(8));
  s.uplinks = static_cast<std::uint32_t>(1 + random.below(4));
  s.uplink_rate = BytesPerSecond{1e9 * static_cast<double>(1 + random.below(8)) / 2};
  return out;
}

void load(NetRig& rig, std::uint32_t nodes, Random random) {
  const std::uint64_t hot = random.below(nodes);
  for (int i = 0; i < 400; ++i) {
    const auto from = static_cast<std::uint32_t>(random.below(nodes));
    auto to = static_cast<std::uint32_t>(random.below(3) == 0 ? hot : random.below(nodes));
    if (to == from) to = (to + 1) % nodes;
    rig.send_at(ns(static_cast<int>(random.below(50'000))), from, to,
                static_cast<std::uint32_t>(84 + random.below(4096)), static_cast<std::uint8_t>(random.below(8)),
                static_cast<std::uint8_t>(random.below(static_cast<std::uint64_t>(rig.profile.wire.ports))));
  }
}

// For any network, load and quanta: bytes into a switch leave it, are dropped or are held there. In the end none are
// held, and the partitions make no difference.
TEST(Ethernet, ConservesPacketsInAnyNetwork) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Drawn drawn = draw(random);
    NetRig one(drawn.profile, drawn.nodes, 1, Picos::max(), drawn.keeps);
    NetRig several(drawn.profile, drawn.nodes, 1 + random.below(5), Picos::max(), drawn.keeps);
    NetRig fine(drawn.profile, drawn.nodes, 1, Picos(1 + static_cast<std::int64_t>(random.below(30'000))), drawn.keeps);
    for (NetRig* rig : {&one, &several, &fine}) {
      load(*rig, drawn.nodes, Random(seed ^ 77));
      for (const Picos until : {ns(20'000), ns(60'000), Picos(std::chrono::seconds(1))}) {
        rig->run(until);
        std::uint64_t held = 0;
        for (const auto& each : rig->net->switches()) {
          const SwitchBytes& bytes = each->bytes();
          EXPECT_EQ(bytes.in, bytes.out + bytes.dropped + bytes.held);
          std::uint64_t queued = 0;
          for (std::uint32_t port = 0; port < each->ports(); ++port) queued += each->output(port).queued();
          EXPECT_EQ(queued, bytes.held);
          held += bytes.held;
        }
        if (until == Picos(std::chrono::seconds(1))) {
          EXPECT_EQ(held, 0u);
        }
      }
      EXPECT_EQ(rig->arrivals().size() + rig->dropped(), rig->sent());
    }
    EXPECT_EQ(one.arrivals(), several.arrivals());
  }
}

// Nothing is dropped if the buffer has room, per port and priority, for XOFF and the bytes in flight.
TEST(Ethernet, PfcNeverDropsWithEnoughHeadroom) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Drawn drawn = draw(random);
    Profile& p = drawn.profile;
    p.fabric.flow_control = FlowControl::pfc;
    p.fabric.loss_probability = 0;
    p.fabric.switches.buffer = Bytes(64 << 20);
    p.nic.input_buffer = Bytes(8 << 20);
    NetRig rig(p, drawn.nodes, 1, Picos::max(), drawn.keeps);
    load(rig, drawn.nodes, Random(seed));
    rig.run();
    EXPECT_EQ(rig.dropped(), 0u);
    EXPECT_EQ(rig.arrivals().size(), rig.sent());
  }
}

TEST(Topology, FlowKeepsOnePathAndFlowsUseAllCables) {
  Profile profile = round_network();
  profile.fabric.switches.rack_nodes = 4;
  profile.fabric.switches.uplinks = 3;
  const Topology topology(profile, 12);
  EXPECT_EQ(topology.switches(), 4u);  // three racks and the spine
  std::vector<int> used(7);
  for (std::uint32_t qp = 0; qp < 300; ++qp) {
    Packet packet;
    packet.source_node = 1;
    packet.target_node = 9;
    packet.source_qp = qp;
    const std::uint32_t out = topology.route(0, packet);
    EXPECT_EQ(out, topology.route(0, packet));
    ++used[out];
    const FarEnd spine = topology.far_end({0, out});
    EXPECT_EQ(spine.id, 3u);
    const FarEnd rack = topology.far_end({spine.id, topology.route(spine.id, packet)});
    EXPECT_EQ(rack.id, 2u);
    EXPECT_EQ(topology.route(rack.id, packet), 1u);  // the second node of that rack
  }
  for (int cable : {4, 5, 6}) EXPECT_GT(used[static_cast<std::size_t>(cable)], 60);
}

TEST(Topology, FlowTakesItsPathsInTurn) {
  Profile profile = round_network();
  profile.fabric.switches.rack_nodes = 4;
  profile.fabric.switches.uplinks = 3;
  profile.fabric.switches.flow_paths = 2;
  const Topology topology(profile, 12);
  Packet packet;
  packet.source_node = 1;
  packet.target_node = 9;
  const auto cable_of = [&](std::uint32_t sequence) {
    packet.sequence = sequence;
    return topology.route(0, packet);
  };
  EXPECT_NE(cable_of(0), cable_of(1));
  for (std::uint32_t sequence = 0; sequence < 10; ++sequence) {
    EXPECT_EQ(cable_of(sequence), cable_of(sequence + 2));
    EXPECT_GE(cable_of(sequence), 4u);
  }
}

// Each cable connects two ports, in both directions.
TEST(Topology, CableEndsReferToEachOther) {
  Profile profile = round_network();
  profile.wire.ports = 2;
  for (const std::uint32_t rack : {0u, 3u, 5u}) {
    profile.fabric.switches.rack_nodes = rack;
    profile.fabric.switches.uplinks = 2;
    const Topology topology(profile, 11);
    for (std::uint32_t number = 0; number < topology.switches(); ++number) {
      for (std::uint32_t port = 0; port < topology.ports_of(number); ++port) {
        const FarEnd end = topology.far_end({number, port});
        if (end.is_node) {
          if (end.id >= 11) continue;
          EXPECT_EQ(topology.of_node(end.id, end.port).of, number);
          EXPECT_EQ(topology.of_node(end.id, end.port).number, port);
        } else {
          const FarEnd back = topology.far_end({end.id, end.port});
          EXPECT_EQ(back.id, number);
          EXPECT_EQ(back.port, port);
        }
      }
    }
  }
}

}  // namespace
}  // namespace verbscope::sim
