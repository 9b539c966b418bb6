// Which packets a QP accepts: by QP number, Q_Key, transport and peer. Each port is a separate network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(QKey, PacketWithWrongQKeyIsDropped) {
  Pair pair(IBV_QPT_UD);
  pair.b.post_recv(pair.qb, kIn, 256, 1);
  ASSERT_EQ(pair.a.post(pair.qa, {.length = 8}, pair.ah, pair.qb->qp_num, 0x2222), 0);
  pair.pass(kLong);
  EXPECT_THAT(pair.b.poll_recvs(), IsEmpty());
  EXPECT_EQ(pair.cluster.nic_counts(1).dropped_refused, 1u);
  ASSERT_EQ(pair.a.post(pair.qa, {.length = 8}, pair.ah, pair.qb->qp_num, 0x1111), 0);
  pair.pass(kLong);
  EXPECT_THAT(ids(pair.b.poll_recvs()), ElementsAre(1));
}

TEST(WrongTarget, PacketsForUnknownQpOrOtherTransportAreDropped) {
  Pair pair(IBV_QPT_UD);
  ibv_qp* rc = pair.b.make_qp(IBV_QPT_RC);
  ASSERT_EQ(bring_up(pair.b, rc, {}, 0, pair.qa->qp_num), 0);
  pair.b.post_recv(rc, kIn, 256, 1);
  ASSERT_EQ(pair.a.post(pair.qa, {.length = 8}, pair.ah, rc->qp_num), 0);
  ASSERT_EQ(pair.a.post(pair.qa, {.length = 8}, pair.ah, 0x7fffff), 0);
  ASSERT_EQ(pair.a.post(pair.qa, {.length = 8}, pair.ah, 0), 0);
  pair.pass(kLong);
  EXPECT_THAT(pair.b.poll_recvs(), IsEmpty());
  EXPECT_EQ(pair.cluster.nic_counts(1).dropped_refused, 3u);
  EXPECT_THAT(pair.a.poll_sends(), SizeIs(3));
}

TEST(WrongTarget, ConnectedQpAcceptsOnlyItsPeer) {
  Pair pair(IBV_QPT_UC);
  ibv_qp* stranger = pair.a.make_qp(IBV_QPT_UC);
  ASSERT_EQ(bring_up(pair.a, stranger, {}, 1, pair.qb->qp_num), 0);
  pair.b.post_recv(pair.qb, kIn, 256, 1);
  ASSERT_EQ(pair.a.post(stranger, {.length = 8}), 0);
  pair.pass(kLong);
  EXPECT_THAT(pair.b.poll_recvs(), IsEmpty());
  EXPECT_EQ(pair.cluster.nic_counts(1).dropped_refused, 1u);
}

TEST(Ports, AreSeparateNetworks) {
  TwoNodes nodes;  // with two ports each
  ibv_qp* from = nodes.a.make_qp(IBV_QPT_UD);
  ibv_qp* to = nodes.b.make_qp(IBV_QPT_UD);
  ASSERT_EQ(bring_up(nodes.a, from, {.port = 1}, 0, 0), 0);
  ASSERT_EQ(bring_up(nodes.b, to, {.port = 2}, 0, 0), 0);
  nodes.b.post_recv(to, kIn, 256, 1);
  ASSERT_EQ(nodes.a.post(from, {.length = 8}, nodes.a.make_ah(1, {.port = 1}), to->qp_num), 0);
  nodes.pass(kLong);
  EXPECT_THAT(nodes.b.poll_recvs(), IsEmpty());
  ibv_qp* second = nodes.a.make_qp(IBV_QPT_UD);
  ASSERT_EQ(bring_up(nodes.a, second, {.port = 2}, 0, 0), 0);
  ASSERT_EQ(nodes.a.post(second, {.length = 8}, nodes.a.make_ah(1, {.port = 2}), to->qp_num), 0);
  nodes.pass(kLong);
  EXPECT_THAT(ids(nodes.b.poll_recvs()), ElementsAre(1));
}

TEST(Ports, EachHasItsOwnRate) {
  // 60 messages of 4096 bytes from each of two QPs. With 26 bytes of headers and CRCs on UC, a packet has 4122 bytes
  // and takes 604.6 ns at 54.54 Gb/s: 36.3 us for 60 packets, 72.6 us for 120.
  const auto time = [](std::uint8_t port_of_second) {
    Profile profile = steady_profile();
    profile.fabric.port_share = 1;
    profile.wire.pcie.lane_mb_per_s *= 10;  // else PCIe would limit both together
    TwoNodes nodes(profile);
    for (const std::uint8_t port : {std::uint8_t{1}, port_of_second}) {
      const QpOptions options{.port = port};
      ibv_qp* from = nodes.a.make_qp(IBV_QPT_UC, options);
      ibv_qp* to = nodes.b.make_qp(IBV_QPT_UC, options);
      EXPECT_EQ(bring_up(nodes.a, from, options, 1, to->qp_num), 0);
      EXPECT_EQ(bring_up(nodes.b, to, options, 0, from->qp_num), 0);
      EXPECT_EQ(nodes.b.post_recvs(to, kIn, 4096, 60), 0);
      EXPECT_EQ(nodes.a.post_list(from, {.length = 4096}, 60), 0);
    }
    Picos when{0};
    EXPECT_THAT(nodes.await(nodes.b.recv_cq(), 120, std::chrono::milliseconds(1), &when), SizeIs(120));
    return static_cast<double>(when.count()) * 1e-6;
  };
  // Latency of the first packet: about 2.5 us.
  EXPECT_NEAR(time(1), 72.6 + 2.5, 2);
  EXPECT_NEAR(time(2), 36.3 + 2.5, 2);
}

}  // namespace
}  // namespace verbscope::test
