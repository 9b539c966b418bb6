// DCQCN, with values computed by hand: Zhu et al., SIGCOMM 2015, section 3.2 and equations 1 to 4.
#include "nic_sim/nic/congestion.hpp"

#include <gtest/gtest.h>

#include "nic_sim/net/ethernet.hpp"

namespace verbscope::sim {
namespace {

using std::chrono::microseconds;

Profile reacting() {
  Profile profile = load_profile("cx4");
  profile.wire.port_rate = BytesPerSecond{4e9};
  profile.nic.congestion_control = CongestionControl::dcqcn;
  return profile;
}

struct Reaction {
  static constexpr std::uint32_t kBytes = 1000;

  Reaction() {
    for (int node = 0; node < 2; ++node) {
      net.attach({this, [](void*, Packet&) {}, [](void*, const Packet&, Picos) {},
                  [](void*, const Packet&) { return false; }, &engine, &packets, &fabric_counts});
    }
    qp.transport = Transport::rc;
    packet.wire_bytes = kBytes;
  }
  static void nothing(void*, std::uint64_t) {}
  // Sends whenever allowed until `until`. Returns the number of packets.
  int send_until(Picos until) {
    int sent = 0;
    while (engine.now() < until) {
      if (congestion.may_send(qp, packet, &nothing, this)) {
        ++sent;
        engine.advance_to(std::max(qp.pace.next, engine.now() + Nanos(250)));  // a packet takes 250 ns on the line
      } else {
        engine.advance_to(qp.pace.next);
      }
    }
    return sent;
  }

  Profile profile = reacting();
  Engine engine;
  PacketMemory memory{Bytes(4096), 1};
  PacketPool packets{memory, 0, 1};
  Mailbox mailbox{{0, 0, 0}, 1};
  Ethernet net{mailbox, profile, 2, {{&engine, &packets}}, 1};
  FabricCounts fabric_counts;
  EthernetCounts counts;
  Congestion congestion{engine, net, packets, profile, counts, 0};
  SimQp qp{};
  Packet packet;
};

TEST(Dcqcn, FirstCnpHalvesRate) {
  Reaction it;
  it.congestion.on_cnp(it.qp);
  EXPECT_DOUBLE_EQ(it.qp.pace.flow.rate(), 2e9);
  EXPECT_DOUBLE_EQ(it.qp.pace.flow.target(), 4e9);
  EXPECT_DOUBLE_EQ(it.qp.pace.flow.alpha(), 1);  // (1 - g) * 1 + g
  it.congestion.on_cnp(it.qp);
  EXPECT_DOUBLE_EQ(it.qp.pace.flow.rate(), 1e9);
  EXPECT_DOUBLE_EQ(it.qp.pace.flow.target(), 2e9);
  EXPECT_EQ(it.counts.rp_cnp_handled, 2u);
}

TEST(Dcqcn, PacketsAreSpacedByRate) {
  Reaction it;
  it.congestion.on_cnp(it.qp);
  // 50 us at 2 GB/s: a packet of 1000 bytes per 0.5 us. The rate rises only after 55 us.
  EXPECT_NEAR(it.send_until(microseconds(50)), 100, 1);
  EXPECT_EQ(it.counts.rate_limited_ps, 0u);  // every call came when it was allowed
  EXPECT_TRUE(it.congestion.may_send(it.qp, it.packet, &Reaction::nothing, &it));
  EXPECT_FALSE(it.congestion.may_send(it.qp, it.packet, &Reaction::nothing, &it));
  EXPECT_EQ(it.counts.rate_limited_ps, 500'000u);
}

TEST(Dcqcn, FiveTimerIncreasesRestoreTargetRate) {
  Reaction it;
  it.congestion.on_cnp(it.qp);
  it.congestion.on_cnp(it.qp);  // rate 1 GB/s, target 2 GB/s
  it.send_until(microseconds(56));
  EXPECT_NEAR(it.qp.pace.flow.rate(), 1.5e9, 1);  // fast recovery: half of the way to the target
  it.send_until(microseconds(5 * 55 + 1));
  EXPECT_NEAR(it.qp.pace.flow.rate(), 2e9 - 1e9 / 32, 1e3);
  EXPECT_NEAR(it.qp.pace.flow.target(), 2e9, 1);
  it.send_until(microseconds(6 * 55 + 1));
  EXPECT_NEAR(it.qp.pace.flow.target(), 2e9 + 40e6 / 8, 1);  // additive increase of 40 Mb/s
}

TEST(Dcqcn, AlphaFallsWithoutCnps) {
  Reaction it;
  it.congestion.on_cnp(it.qp);
  it.engine.advance_to(microseconds(55 * 10 + 1));
  it.congestion.on_cnp(it.qp);
  // Ten intervals multiply alpha by 1 - g; this notification adds g again.
  const double g = 1.0 / 256;
  const double fallen = std::pow(1 - g, 10);
  EXPECT_NEAR(it.qp.pace.flow.alpha(), (1 - g) * fallen + g, 1e-9);
}

TEST(Dcqcn, SendsOneCnpPerFlowIn50Microseconds) {
  Reaction it;
  it.packet.source_node = 1;
  for (int i = 0; i < 10; ++i) it.congestion.on_marked(it.qp, it.packet);
  EXPECT_EQ(it.counts.np_cnp_sent, 1u);
  it.engine.advance_to(microseconds(50));
  it.congestion.on_marked(it.qp, it.packet);
  EXPECT_EQ(it.counts.np_cnp_sent, 2u);
  EXPECT_EQ(it.counts.np_ecn_marked_roce_packets, 11u);
}

}  // namespace
}  // namespace verbscope::sim
