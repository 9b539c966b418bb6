// What holds senders back: credits of the link between ports, and acknowledgements that cover several messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::SizeIs;

// Every packet keeps the receiver busy for a microsecond, DMAs take its unit no time; its buffer holds 8 KB.
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

class CreditsOf : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(, CreditsOf, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(CreditsOf, ASlowReceiverHoldsTheSenderBackWithoutLoss) {
  Pair pair(GetParam(), deep(), slow_receiver());
  ASSERT_EQ(pair.b.post_recvs(pair.qb, kIn, 1064, 300), 0);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(pair.send_list({.length = 1024}, 15), 0);
  Picos when{0};
  ASSERT_THAT(pair.await(pair.a.send_cq(), 300, std::chrono::milliseconds(1), &when), SizeIs(300));
  // At least 1050 bytes a packet: the buffer holds seven. The last may leave when all but seven, and the one in
  // service, are done: 292 us. Without credits all would have left after 300 * 1058 B at 6.8 GB/s, 47 us.
  EXPECT_GT(to_seconds(when) * 1e6, 292.0);
  pair.pass(std::chrono::microseconds(50));
  const NicCounts counts = pair.cluster.nic_counts(1);
  EXPECT_THAT(pair.b.poll_recvs(), SizeIs(300));
  EXPECT_EQ(counts.dropped_no_recv + counts.dropped_refused + counts.dropped_by_switch, 0u);
  EXPECT_EQ(counts.messages_received, 300u);
  EXPECT_GT(pair.cluster.nic_counts(0).credit_waits, 200u);
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
  // Three nodes send 100 each to the fourth. Of the first 100 that arrive each has a fair share: turns are by packet,
  // and what is in the receiver's buffer at first (seven packets) may be of one.
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
        node.relax();
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
  // Packets come faster than they are handled, so each ACK covers as many as it may, but for the last and those before
  // there is a line.
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

// One way, measured by hand. BlueFlame of one line: (64 + 26) B at 1 / (15753.6 MB/s * 0.981) = 64.707 ps/B and a gap
// of 0.43 ns: 6.25 ns; propagation 120; front end 40; QP context missing: none, a message went before; unit 45 + 18.6
// = 63.6; transmit 60, cable 15, switch 200, 34 B + 8 DETH at 6817.5 MB/s 6.2, cable 15; responder 67 + 64 = 131; CQE
// (64 + 26) B 5.8, 120 of way and 60 of memory: 843 ns in all; a poll takes 16 ns.
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
  const double expected = 6.25 + 120 + 40 + 63.6 + 60 + 15 + 200 + 6.2 + 15 + 131 + 5.8 + 120 + 60;
  EXPECT_NEAR(static_cast<double>((when - begin).count()) * 1e-3, expected + 16 + 8, 10);
}

}  // namespace
}  // namespace verbscope::test
