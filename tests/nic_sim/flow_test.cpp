// Flow control: credits of the link between ports, and acknowledgements that cover several messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::SizeIs;

// Every packet occupies the receiver for a microsecond, DMAs take no unit time, and the buffer holds 8 KB.
Profile slow_receiver() {
  Profile profile = steady_profile();
  profile.nic.receive_packet = std::chrono::microseconds(1);
  profile.nic.receive_dma = Picos(0);
  profile.nic.input_buffer = Bytes(8192);
  return profile;
}

QpOptions deep() {
  return {.cap = {.max_send_wr = 512, .max_recv_wr = 512, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0}};
}

// Maximum number of packets with 1024 B of payload between port and receiver. They take at least 1050 B. The buffer
// holds 7, and 1 is in service. A port stops when the switch holds what the port sends in 2 * 275 ns at 6.8 GB/s: 4.
// The port is informed 275 ns late, plus the time of an eighth of the 4 (less than a packet); packets that arrive until
// then left 275 ns before: 4. Its time is given away for 275 ns: 2. One is leaving.
constexpr int kMostUnderWay = 7 + 1 + 4 + 4 + 2 + 1;

class CreditsOf : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(, CreditsOf, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(CreditsOf, ASlowReceiverHoldsTheSenderBackWithoutLoss) {
  Pair pair(GetParam(), deep(), slow_receiver());
  ASSERT_EQ(pair.b.post_recvs(pair.qb, kIn, 1064, 300), 0);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(pair.send_list({.length = 1024}, 15), 0);
  Picos when{0};
  ASSERT_THAT(pair.await(pair.a.send_cq(), 300, std::chrono::milliseconds(1), &when), SizeIs(300));
  // The last packet may leave when at most kMostUnderWay packets are not done: after 280 us. Without credits all would
  // have left after 300 * 1058 B at 6.8 GB/s, 47 us.
  EXPECT_GT(to_seconds(when) * 1e6, 300.0 - kMostUnderWay);
  pair.pass(std::chrono::microseconds(50));
  const NicCounts counts = pair.cluster.nic_counts(1);
  EXPECT_THAT(pair.b.poll_recvs(), SizeIs(300));
  EXPECT_EQ(counts.dropped_no_recv + counts.dropped_refused + counts.dropped_by_switch, 0u);
  EXPECT_EQ(counts.messages_received, 300u);
  EXPECT_GT(pair.cluster.nic_counts(0).credit_waits, 200u);
}

TEST(Credits, NoMoreIsUnderWayThanTheBuffersHold) {
  Pair pair(IBV_QPT_UD, deep(), slow_receiver());
  ASSERT_EQ(pair.b.post_recvs(pair.qb, kIn, 1064, 300), 0);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(pair.send_list({.length = 1024}, 15), 0);
  std::vector<Picos> port_used;
  std::vector<std::uint64_t> done;
  for (int i = 1; i <= 250; ++i) {
    pair.cluster.at(std::chrono::microseconds(i), [&] {
      port_used.push_back(pair.cluster.usage_times(0).ports_out[0]);
      done.push_back(pair.cluster.nic_counts(1).messages_received);
    });
  }
  pair.pass(std::chrono::microseconds(400));
  ASSERT_THAT(pair.b.poll_recvs(), SizeIs(300));
  const Picos packet = pair.cluster.usage_times(0).ports_out[0] / 300;
  std::vector<std::uint64_t> under_way;
  for (std::size_t i = 0; i < done.size(); ++i) {
    under_way.push_back(static_cast<std::uint64_t>(port_used[i] / packet) - done[i]);
  }
  EXPECT_THAT(under_way, testing::Each(testing::Le(kMostUnderWay)));
  // After the first packets the receiver never waits for packets.
  EXPECT_THAT(std::vector<std::uint64_t>(under_way.begin() + 10, under_way.end()), testing::Each(testing::Ge(7 + 1)));
}

// A second receiver is idle, but its packet waits behind packets for which the first has no room.
TEST(Credits, WhatCannotLeaveHoldsUpWhatIsBehindIt) {
  SimCluster cluster(slow_receiver(), 3, 1);
  TestNode from(cluster, 0), full(cluster, 1), idle(cluster, 2);
  ibv_qp* source = from.make_qp(IBV_QPT_UD, deep());
  ASSERT_EQ(bring_up(from, source, deep(), 0, 0), 0);
  std::vector<ibv_qp*> sinks;
  for (TestNode* to : {&full, &idle}) {
    sinks.push_back(to->make_qp(IBV_QPT_UD, deep()));
    ASSERT_EQ(bring_up(*to, sinks.back(), deep(), 0, 0), 0);
    ASSERT_EQ(to->post_recvs(sinks.back(), 0, 1064, 120), 0);
  }
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(from.post_list(source, {.length = 1024}, 15, from.make_ah(1), sinks[0]->qp_num), 0);
  }
  ASSERT_EQ(from.post(source, {.length = 1024}, from.make_ah(2), sinks[1]->qp_num), 0);
  Picos arrived{0};
  cluster.add_thread(2, 0, [&](SimNode& node) {
    ibv_wc wc{};
    while (ibv_poll_cq(idle.recv_cq(), 1, &wc) == 0) node.idle();
    arrived = node.now();
  });
  cluster.run();
  // 120 packets are before it; all of them must be done except those under way.
  EXPECT_GT(to_seconds(arrived) * 1e6, 120.0 - kMostUnderWay);
}

// Long and short packets alternate. A short one must not overtake if there is room only for it.
TEST(Credits, WhatTheSwitchHoldsStaysInOrder) {
  Pair pair(IBV_QPT_UD, deep(), slow_receiver());
  ASSERT_EQ(pair.b.post_recvs(pair.qb, kIn, 1064, 200), 0);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(pair.send({.length = 1024}), 0);
    ASSERT_EQ(pair.send({.length = 1}), 0);
  }
  pair.pass(std::chrono::microseconds(400));
  const std::vector<ibv_wc> received = pair.b.poll_recvs();
  ASSERT_THAT(received, SizeIs(200));
  for (std::size_t i = 0; i < received.size(); ++i)
    EXPECT_EQ(received[i].byte_len, 40 + (i % 2 == 0 ? 1024u : 1u)) << i;
}

TEST(Credits, AReceiverWithRoomHoldsNobodyBack) {
  Pair pair(IBV_QPT_UD, deep());
  ASSERT_EQ(pair.b.post_recvs(pair.qb, kIn, 1064, 100), 0);
  ASSERT_EQ(pair.send_list({.length = 1024}, 100), 0);
  pair.pass(std::chrono::microseconds(200));
  EXPECT_THAT(pair.b.poll_recvs(), SizeIs(100));
  EXPECT_EQ(pair.cluster.nic_counts(0).credit_waits, 0u);
}

TEST(Credits, SendersTakeTurnsAtAFullReceiver) {
  // Three nodes send 100 packets each to the fourth. Each has a fair share of the first 100 arrivals: turns are by
  // packet, but the packets first in the receiver's buffer (seven) may be from one node.
  SimCluster cluster(slow_receiver(), 4, 1);
  TestNode to(cluster, 3);
  ibv_qp* sink = to.make_qp(IBV_QPT_UD, deep());
  ASSERT_EQ(bring_up(to, sink, deep(), 0, 0), 0);
  ASSERT_EQ(to.post_recvs(sink, 0, 1064, 300), 0);
  std::vector<std::unique_ptr<TestNode>> from;
  std::vector<ibv_qp*> qps;
  for (int i = 0; i < 3; ++i) {
    from.push_back(std::make_unique<TestNode>(cluster, i));
    qps.push_back(from.back()->make_qp(IBV_QPT_UD, deep()));
    ASSERT_EQ(bring_up(*from.back(), qps.back(), deep(), 0, 0), 0);
    ibv_ah* ah = from.back()->make_ah(3);
    from.back()->memory()[0] = static_cast<std::uint8_t>(i);
    for (int n = 0; n < 5; ++n)
      ASSERT_EQ(from.back()->post_list(qps.back(), {.length = 1024}, 20, ah, sink->qp_num), 0);
  }
  std::vector<std::size_t> after_third(3);  // by node
  std::size_t received = 0;
  cluster.add_thread(3, 0, [&](SimNode& node) {
    ibv_wc wc{};
    while (received < 300) {
      if (ibv_poll_cq(to.recv_cq(), 1, &wc) == 0) {
        node.idle();
        continue;
      }
      ++received;
      if (received <= 100) ++after_third[*to.memory(wc.wr_id * 1064 + 40)];
    }
  });
  cluster.run();
  EXPECT_EQ(received, 300u);
  for (const std::size_t share : after_third) EXPECT_NEAR(static_cast<double>(share), 33.3, 10);
  EXPECT_EQ(cluster.nic_counts(3).dropped_no_recv, 0u);
}

struct AckCase {
  int coalescing;
  int messages;
  friend std::ostream& operator<<(std::ostream& out, const AckCase& c) {
    return out << c.messages << "_by_" << c.coalescing;
  }
};

class AckCoalescing : public testing::TestWithParam<AckCase> {};

TEST_P(AckCoalescing, AnAckCoversAtMostSoManyMessages) {
  const AckCase& c = GetParam();
  Profile profile = slow_receiver();
  profile.nic.ack_coalescing = c.coalescing;
  Pair pair(IBV_QPT_RC, deep(), profile);
  ASSERT_EQ(pair.b.post_recvs(pair.qb, kIn, 64, c.messages), 0);
  ASSERT_EQ(pair.send_list({.length = 8}, c.messages), 0);
  ASSERT_THAT(pair.await(pair.a.send_cq(), static_cast<std::size_t>(c.messages), std::chrono::milliseconds(2)),
              SizeIs(c.messages));
  const auto messages = static_cast<std::uint64_t>(c.messages);
  const auto at_most = static_cast<std::uint64_t>(c.coalescing);
  const std::uint64_t acks = pair.cluster.nic_counts(1).acks_sent;
  EXPECT_GE(acks, divide_up(messages, at_most));
  // Packets arrive faster than they are processed, so each ACK covers the maximum, except the last one and those before
  // a backlog forms.
  EXPECT_LE(acks, divide_up(messages, at_most) + 2);
}

INSTANTIATE_TEST_SUITE_P(, AckCoalescing,
                         testing::Values(AckCase{1, 40}, AckCase{4, 40}, AckCase{4, 41}, AckCase{16, 40},
                                         AckCase{64, 40}),
                         testing::PrintToStringParamName());

TEST(Ack, ALoneMessageIsAcknowledgedAtOnce) {
  Profile profile = steady_profile();
  profile.nic.ack_coalescing = 64;
  Pair pair(IBV_QPT_RC, {}, profile);
  pair.b.post_recv(pair.qb, kIn, 64);
  ASSERT_EQ(pair.send({.length = 8}), 0);
  EXPECT_THAT(pair.await(pair.a.send_cq(), 1, std::chrono::microseconds(5)), SizeIs(1));
  EXPECT_EQ(pair.cluster.nic_counts(1).acks_sent, 1u);
}

TEST(Ack, ComesOnlyOnReliableConnections) {
  for (const ibv_qp_type type : {IBV_QPT_UC, IBV_QPT_UD}) {
    Pair pair(type);
    pair.b.post_recvs(pair.qb, kIn, 64, 4);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(pair.send({.length = 8}), 0);
    pair.pass(std::chrono::microseconds(50));
    EXPECT_EQ(pair.cluster.nic_counts(1).acks_sent, 0u);
    EXPECT_EQ(pair.cluster.nic_counts(0).packets_received, 0u);
  }
}

// One way, computed by hand. BlueFlame of one line: (64 + 26) B at 1 / (15753.6 MB/s * 0.981) = 64.707 ps/B, and a gap
// of 0.43 ns: 6.25 ns; propagation 120; front end 40; QP context 0, because a message went before; unit 45 + 18.6 =
// 63.6; transmit 60, cable 15, switch 200, 34 B + 8 DETH at 6817.5 MB/s 6.2, cable 15; responder 67 + 64 = 131; CQE (64
// + 26) B 5.8, propagation 120, memory 60: 843 ns in total. A poll takes 16 ns.
TEST(Latency, OfAHeaderOnlyDatagramIsTheSumOfItsParts) {
  Pair pair(IBV_QPT_UD);
  pair.b.post_recvs(pair.qb, kIn, 64, 16);
  ASSERT_EQ(pair.send({.flags = 0}), 0);
  pair.pass(std::chrono::microseconds(20));
  pair.b.poll_recvs();
  const Picos begin = pair.cluster.now();
  ASSERT_EQ(pair.send({.flags = 0}), 0);
  Picos when{0};
  ASSERT_THAT(pair.await(pair.b.recv_cq(), 1, std::chrono::milliseconds(1), &when), SizeIs(1));
  const double expected = 6.25 + 120 + 40 + 63.6 + 200 + 15 + 200 + 6.2 + 15 + 131 + 5.8 + 120 + 60;
  EXPECT_NEAR(static_cast<double>((when - begin).count()) * 1e-3, expected + 16 + 8, 10);
}

}  // namespace
}  // namespace verbscope::test
