// Receivers that are not ready: no RECV posted, none that fits, or no QP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class Unreliable : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(, Unreliable, testing::Values(IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(Unreliable, MessageWithoutRecvIsDroppedAndCounted) {
  Pair pair(GetParam());
  pair.b.post_recv(pair.qb, kIn, 256, 1);
  for (std::uint32_t i = 0; i < 3; ++i) {
    fill(pair.a.memory(i * 64), 64, i);
    ASSERT_EQ(pair.send({.offset = i * 64, .length = 64}), 0);
  }
  pair.pass(kLong);
  EXPECT_THAT(pair.a.poll_sends(), SizeIs(3));  // they complete when sent
  EXPECT_THAT(ids(pair.b.poll_recvs()), ElementsAre(1));
  EXPECT_TRUE(has_pattern(pair.b.memory(kIn + grh_room(GetParam())), 64, 0));
  EXPECT_EQ(pair.cluster.nic_counts(1).dropped_no_recv, 2u);
  EXPECT_EQ(pair.cluster.nic_counts(1).messages_received, 1u);
  // The QP still works.
  pair.b.post_recv(pair.qb, kIn, 256, 2);
  ASSERT_EQ(pair.send({.length = 64}), 0);
  pair.pass(kLong);
  EXPECT_THAT(ids(pair.b.poll_recvs()), ElementsAre(2));
}

TEST(UcNotReady, LongMessageIsDroppedCompletely) {
  Pair pair(IBV_QPT_UC, {.mtu = IBV_MTU_256});
  ASSERT_EQ(pair.send({.length = 1000, .id = 1}), 0);  // four packets, no RECV
  pair.pass(kLong);
  pair.b.post_recv(pair.qb, kIn, 1000, 2);
  fill(pair.a.memory(), 1000, 6);
  ASSERT_EQ(pair.send({.length = 1000, .id = 3}), 0);
  pair.pass(kLong);
  EXPECT_THAT(ids(pair.b.poll_recvs()), ElementsAre(2));
  EXPECT_TRUE(has_pattern(pair.b.memory(kIn), 1000, 6));
}

TEST(UcNotReady, PacketsWithoutFirstPacketAreDropped) {
  // The receiver expects the PSN of the message's second packet, one more than the sender's.
  Pair pair(IBV_QPT_UC, {.mtu = IBV_MTU_256});
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(pair.a.provider().modify_qp(pair.qa, &attr, IBV_QP_STATE), 0);
  QpOptions one_before = pair.options;
  one_before.psn = 0x1233;
  ASSERT_EQ(bring_up(pair.a, pair.qa, one_before, 1, pair.qb->qp_num), 0);
  pair.b.post_recv(pair.qb, kIn, 2000, 1);
  ASSERT_EQ(pair.send({.length = 600}), 0);
  pair.pass(kLong);
  for (const ibv_wc& wc : pair.b.poll_recvs()) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, 600u);
  }
}

// min_rnr_timer 12 is 0.64 ms, IBTA 1.3 volume 1 section 9.7.5.2.8.
TEST(RcNotReady, SenderRetriesUntilRecvIsPosted) {
  Pair pair(IBV_QPT_RC, {.min_rnr_timer = 12});
  fill(pair.a.memory(), 300, 8);
  ASSERT_EQ(pair.send({.length = 300, .id = 4}), 0);
  pair.pass(std::chrono::microseconds(500));
  EXPECT_EQ(pair.cluster.nic_counts(1).rnr_naks_sent, 1u);
  EXPECT_THAT(pair.a.poll_sends(), IsEmpty());
  pair.b.post_recv(pair.qb, kIn, 300, 7);
  pair.pass(std::chrono::microseconds(120));  // 620 us: the timer still runs
  EXPECT_THAT(pair.b.poll_recvs(), IsEmpty());
  pair.pass(std::chrono::microseconds(100));  // 720 us: it ended at least 60 us ago
  EXPECT_THAT(ids(pair.b.poll_recvs()), ElementsAre(7));
  EXPECT_TRUE(has_pattern(pair.b.memory(kIn), 300, 8));
  pair.pass(kLong);
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_SUCCESS));
  EXPECT_EQ(pair.cluster.nic_counts(0).packets_resent, 1u);
  EXPECT_EQ(pair.cluster.nic_counts(0).messages_sent, 1u);
}

TEST(RcNotReady, LateRecvsLoseAndDuplicateNothing) {
  Pair pair(IBV_QPT_RC);
  for (std::uint32_t i = 0; i < 32; ++i) {
    fill(pair.a.memory(i * 512), 400 + i, i);
    ASSERT_EQ(pair.send({.offset = i * 512, .length = 400 + i, .id = i}), 0);
  }
  for (std::uint32_t i = 0; i < 32; ++i) {
    pair.pass(std::chrono::microseconds(25));
    pair.b.post_recv(pair.qb, kIn + i * 512, 512, i);
  }
  pair.pass(kLong);
  const auto received = pair.b.poll_recvs();
  ASSERT_THAT(received, SizeIs(32));
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(received[i].byte_len, 400 + i);
    EXPECT_TRUE(has_pattern(pair.b.memory(kIn + i * 512), 400 + i, i));
  }
  const auto sent = pair.a.poll_sends();
  ASSERT_THAT(sent, SizeIs(32));
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(sent[i].wr_id, i);
  EXPECT_EQ(pair.cluster.nic_counts(1).messages_received, 32u);
}

class RnrRetries : public testing::TestWithParam<int> {};

TEST_P(RnrRetries, SenderFailsAfterItsRetries) {
  const auto retries = static_cast<std::uint8_t>(GetParam());
  Pair pair(IBV_QPT_RC, {.rnr_retries = retries});
  ASSERT_EQ(pair.send({.length = 8, .id = 1}), 0);
  ASSERT_EQ(pair.send({.length = 8, .id = 2, .flags = 0}), 0);
  pair.pass(std::chrono::microseconds(200));
  // Flushed requests complete whether they were signaled or not.
  const auto sent = pair.a.poll_sends();
  EXPECT_THAT(ids(sent), ElementsAre(1, 2));
  EXPECT_THAT(statuses(sent), ElementsAre(IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(pair.qa->state, IBV_QPS_ERR);
  EXPECT_EQ(pair.qb->state, IBV_QPS_RTS);
  // The first try and each retry are refused.
  EXPECT_EQ(pair.cluster.nic_counts(1).rnr_naks_sent, static_cast<std::uint64_t>(retries) + 1);
}

INSTANTIATE_TEST_SUITE_P(, RnrRetries, testing::Values(0, 1, 3, 6));

TEST(TooLong, OnRcBothSidesFail) {
  Pair pair(IBV_QPT_RC);
  pair.b.post_recv(pair.qb, kIn, 99, 1);
  pair.b.post_recv(pair.qb, kIn, 99, 2);
  pair.b.post(pair.qb, {.length = 0, .id = 20});  // a has no RECV for it, so it is flushed
  ASSERT_EQ(pair.send({.length = 100, .id = 10}), 0);
  ASSERT_EQ(pair.send({.length = 10, .id = 11}), 0);
  pair.pass(kLong);
  const auto received = pair.b.poll_recvs();
  EXPECT_THAT(ids(received), ElementsAre(1, 2));
  EXPECT_THAT(statuses(received), ElementsAre(IBV_WC_LOC_LEN_ERR, IBV_WC_WR_FLUSH_ERR));
  const auto sent = pair.a.poll_sends();
  EXPECT_THAT(ids(sent), ElementsAre(10, 11));
  EXPECT_THAT(statuses(sent), ElementsAre(IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR));
  EXPECT_THAT(statuses(pair.b.poll_sends()), ElementsAre(IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(pair.qa->state, IBV_QPS_ERR);
  EXPECT_EQ(pair.qb->state, IBV_QPS_ERR);
  for (std::size_t i = 99; i < 4096; ++i) ASSERT_EQ(*pair.b.memory(kIn + i), 0) << "written behind the buffer";
}

TEST(TooLong, OnRcLaterPacketMayExceedRecv) {
  Pair pair(IBV_QPT_RC, {.mtu = IBV_MTU_256});
  pair.b.post_recv(pair.qb, kIn, 600, 1);
  ASSERT_EQ(pair.send({.length = 601, .id = 10}), 0);
  pair.pass(kLong);
  EXPECT_THAT(statuses(pair.b.poll_recvs()), ElementsAre(IBV_WC_LOC_LEN_ERR));
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_REM_INV_REQ_ERR));
}

TEST_P(Unreliable, TooLongMessageFailsOnlyReceiver) {
  Pair pair(GetParam());
  pair.b.post_recv(pair.qb, kIn, grh_room(GetParam()) + 99, 1);
  ASSERT_EQ(pair.send({.length = 100, .id = 10}), 0);
  pair.pass(kLong);
  EXPECT_THAT(statuses(pair.b.poll_recvs()), ElementsAre(IBV_WC_LOC_LEN_ERR));
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_SUCCESS));
  EXPECT_EQ(pair.qa->state, IBV_QPS_RTS);
}

TEST(LostPeer, AnRcSenderTimesOutAfterItsRetries) {
  // Timeout code 2: 16.384 us. The first try and two retries fail 3 * 16.384 = 49 us after the send.
  Pair pair(IBV_QPT_RC, {.timeout = 2, .retries = 2});
  pair.b.destroy(pair.qb);
  ASSERT_EQ(pair.a.post(pair.qa, {.length = 8, .id = 1}), 0);
  ASSERT_EQ(pair.a.post(pair.qa, {.length = 8, .id = 2}), 0);
  pair.pass(std::chrono::microseconds(45));
  EXPECT_THAT(pair.a.poll_sends(), IsEmpty());
  EXPECT_EQ(pair.cluster.nic_counts(0).packets_resent, 4u);
  pair.pass(std::chrono::microseconds(15));
  const auto sent = pair.a.poll_sends();
  EXPECT_THAT(ids(sent), ElementsAre(1, 2));
  EXPECT_THAT(statuses(sent), ElementsAre(IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR));
  EXPECT_EQ(pair.cluster.nic_counts(1).dropped_refused, 6u);  // 2 requests, 3 times
}

TEST(LostPeer, PeerInErrorStateCausesTimeout) {
  Pair pair(IBV_QPT_RC, {.timeout = 2, .retries = 1});
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(pair.b.provider().modify_qp(pair.qb, &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(pair.send({.length = 8}), 0);
  pair.pass(kLong);
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_RETRY_EXC_ERR));
}

TEST(LostPeer, DestroyedQpDoesNotBlockOtherQps) {
  // All QPs of b share one responder unit. The destroyed QP has queued packets and RECVs that are being fetched.
  Profile profile = steady_profile();
  profile.nic.responder_units = 1;
  Pair pair(IBV_QPT_UD, {}, profile);
  ibv_qp* other = pair.b.make_qp(IBV_QPT_UD);
  ASSERT_EQ(bring_up(pair.b, other, {}, 0, 0), 0);
  for (std::int64_t moment = 0; moment < 60; ++moment) {
    ibv_qp* doomed = pair.b.make_qp(IBV_QPT_UD);
    ASSERT_EQ(bring_up(pair.b, doomed, {}, 0, 0), 0);
    for (int i = 0; i < 3; ++i) pair.a.post(pair.qa, {.length = 32}, pair.ah, doomed->qp_num);
    // A message takes about 530 ns to the responder. The RECVs are posted before it arrives; their fetch takes 400 ns.
    pair.pass(Nanos(300));
    pair.b.post_recvs(doomed, kIn, 256, 3);
    pair.pass(Nanos(25 * moment));
    pair.b.destroy(doomed);
    ASSERT_EQ(pair.b.post_recv(other, kIn, 256, 5), 0);
    ASSERT_EQ(pair.a.post(pair.qa, {.length = 32}, pair.ah, other->qp_num), 0);
    pair.pass(std::chrono::microseconds(20));
    ASSERT_THAT(ids(pair.b.poll_recvs()), ElementsAre(5)) << "destroyed " << 25 * moment << " ns after the RECVs";
    ASSERT_THAT(pair.a.poll_sends(), SizeIs(4));
  }
}

// Two messages of several packets at the same time, with one unit. The second's RECV is in the next group that the
// adapter fetches, and must be fetched although the first message is incomplete, with its packets waiting behind.
TEST(SharedQueue, RecvIsFetchedWhileMessageIsInFlight) {
  Profile profile = steady_profile();
  profile.nic.responder_units = 1;
  const auto group = static_cast<std::uint32_t>(profile.wire.recv_prefetch);
  TwoNodes nodes(profile);
  const QpOptions options{.mtu = IBV_MTU_1024};
  ibv_srq_init_attr attr{};
  attr.attr = {.max_wr = 64, .max_sge = 1, .srq_limit = 0};
  ibv_srq* srq = nodes.b.provider().create_srq(nodes.b.pd(), &attr);
  ibv_qp* from[2];
  ibv_qp* to[2];
  for (int i = 0; i < 2; ++i) {
    from[i] = nodes.a.make_qp(IBV_QPT_RC, options);
    ibv_qp_init_attr init{};
    init.send_cq = nodes.b.send_cq();
    init.recv_cq = nodes.b.recv_cq();
    init.srq = srq;
    init.cap = options.cap;
    init.qp_type = IBV_QPT_RC;
    to[i] = nodes.b.provider().create_qp(nodes.b.pd(), &init);
    ASSERT_EQ(bring_up(nodes.a, from[i], options, 1, to[i]->qp_num), 0);
    ASSERT_EQ(bring_up(nodes.b, to[i], options, 0, from[i]->qp_num), 0);
  }
  for (std::uint32_t i = 0; i <= group; ++i) {
    ibv_sge sge = nodes.b.sge(kIn + i * 16384, 16384);
    ibv_recv_wr wr{.wr_id = i, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
  }
  for (std::uint32_t i = 0; i + 1 < group; ++i) ASSERT_EQ(nodes.a.post(from[0], {.length = 8}), 0);
  nodes.pass(kLong);
  ASSERT_THAT(nodes.b.poll_recvs(), SizeIs(group - 1));
  for (ibv_qp* qp : from) ASSERT_EQ(nodes.a.post(qp, {.length = 16000}), 0);
  nodes.pass(kLong);
  EXPECT_THAT(ids(nodes.b.poll_recvs()), testing::UnorderedElementsAre(group - 1, group));
  for (ibv_qp* qp : to) nodes.b.provider().destroy_qp(qp);
  nodes.b.provider().destroy_srq(srq);
}

}  // namespace
}  // namespace verbscope::test
