// Completions: in order, only for signaled requests, and freeing queue places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

QpOptions depth(std::uint32_t send, std::uint32_t recv) {
  return {
      .cap = {.max_send_wr = send, .max_recv_wr = recv, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64}};
}

class Completions : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(, Completions, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(Completions, UnsignaledRequestsCauseNone) {
  Pair pair(GetParam());
  pair.b.post_recvs(pair.qb, kIn, 128, 8);
  for (std::uint64_t i = 0; i < 8; ++i) {
    ASSERT_EQ(pair.send({.length = 32, .id = i, .flags = i % 4 == 3 ? kSignaled : 0}), 0);
  }
  pair.pass(kLong);
  EXPECT_THAT(ids(pair.a.poll_sends()), ElementsAre(3, 7));
  EXPECT_THAT(pair.b.poll_recvs(), SizeIs(8));
}

TEST_P(Completions, QpThatSignalsAllNeedsNoFlag) {
  Pair pair(GetParam(), {.signal_all = true});
  pair.b.post_recvs(pair.qb, kIn, 128, 2);
  ASSERT_EQ(pair.send({.length = 32, .id = 1, .flags = 0}), 0);
  ASSERT_EQ(pair.send({.length = 32, .id = 2, .flags = 0}), 0);
  pair.pass(kLong);
  EXPECT_THAT(ids(pair.a.poll_sends()), ElementsAre(1, 2));
}

TEST_P(Completions, FullSendQueueRefusesUntilCompletionIsPolled) {
  Pair pair(GetParam(), depth(4, 16));
  pair.b.post_recvs(pair.qb, kIn, 128, 16);
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(pair.send({.length = 8, .id = i}), 0);
  EXPECT_EQ(pair.send({.length = 8}), ENOMEM);
  pair.pass(kLong);
  EXPECT_EQ(pair.send({.length = 8}), ENOMEM) << "sent, but not polled";
  EXPECT_THAT(pair.a.poll_sends(), SizeIs(4));
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(pair.send({.length = 8, .id = i}), 0);
  EXPECT_EQ(pair.send({.length = 8}), ENOMEM);
}

TEST_P(Completions, PolledCompletionFreesEarlierUnsignaledRequests) {
  Pair pair(GetParam(), depth(4, 16));
  pair.b.post_recvs(pair.qb, kIn, 128, 16);
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(pair.send({.length = 8, .id = i, .flags = i == 2 ? kSignaled : 0}), 0);
  }
  pair.pass(kLong);
  EXPECT_THAT(ids(pair.a.poll_sends()), ElementsAre(2));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pair.send({.length = 8, .flags = 0}), 0);
  EXPECT_EQ(pair.send({.length = 8}), ENOMEM) << "the fourth is not known to be done";
}

TEST_P(Completions, FullRecvQueueRefusesUntilCompletionIsPolled) {
  Pair pair(GetParam(), depth(16, 4));
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(pair.b.post_recv(pair.qb, kIn, 128, i), 0);
  EXPECT_EQ(pair.b.post_recv(pair.qb, kIn, 128), ENOMEM);
  ASSERT_EQ(pair.send({.length = 8}), 0);
  pair.pass(kLong);
  EXPECT_EQ(pair.b.post_recv(pair.qb, kIn, 128), ENOMEM) << "used, but not polled";
  EXPECT_THAT(ids(pair.b.poll_recvs()), ElementsAre(0));
  EXPECT_EQ(pair.b.post_recv(pair.qb, kIn, 128), 0);
  EXPECT_EQ(pair.b.post_recv(pair.qb, kIn, 128), ENOMEM);
}

TEST_P(Completions, ListThatDoesNotFitIsPostedInPartAndReportsFirstRefused) {
  Pair pair(GetParam(), depth(4, 16));
  pair.b.post_recvs(pair.qb, kIn, 128, 16);
  ASSERT_EQ(pair.send({.length = 8, .id = 100}), 0);
  EXPECT_EQ(pair.send_list({.length = 8, .id = 0}, 6), ENOMEM);
  pair.pass(kLong);
  EXPECT_THAT(ids(pair.a.poll_sends()), ElementsAre(100, 0, 1, 2));
  EXPECT_THAT(pair.b.poll_recvs(), SizeIs(4));
}

TEST_P(Completions, QueuesWrapManyTimes) {
  // 500 messages in each direction through queues of 5 places (not a power of two).
  Pair pair(GetParam(), depth(5, 5));
  const std::uint32_t head = grh_room(GetParam());
  for (std::uint64_t i = 0; i < 5; ++i) pair.b.post_recv(pair.qb, kIn + i * 256, 256, i);
  for (unsigned round = 0; round < 100; ++round) {
    for (unsigned i = 0; i < 5; ++i) {
      fill(pair.a.memory(i * 256), 100 + i, round * 5 + i);
      ASSERT_EQ(pair.send({.offset = i * 256, .length = 100 + i, .id = round * 5 + i}), 0);
    }
    const auto received = pair.await(pair.b.recv_cq(), 5);
    ASSERT_THAT(received, SizeIs(5)) << "round " << round;
    for (unsigned i = 0; i < 5; ++i) {
      EXPECT_EQ(received[i].wr_id, i);
      ASSERT_TRUE(has_pattern(pair.b.memory(kIn + i * 256 + head), 100 + i, round * 5 + i)) << round;
      ASSERT_EQ(pair.b.post_recv(pair.qb, kIn + i * 256, 256, i), 0);
    }
    ASSERT_THAT(pair.await(pair.a.send_cq(), 5), SizeIs(5)) << "round " << round;
  }
}

TEST_P(Completions, PollReturnsAtMostRequestedNumber) {
  Pair pair(GetParam());
  pair.b.post_recvs(pair.qb, kIn, 128, 10);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(pair.send({.length = 8, .id = i}), 0);
  pair.pass(kLong);
  std::vector<ibv_wc> wc(16);
  EXPECT_EQ(ibv_poll_cq(pair.a.send_cq(), 4, wc.data()), 4);
  EXPECT_EQ(wc[3].wr_id, 3u);
  EXPECT_EQ(ibv_poll_cq(pair.a.send_cq(), 16, wc.data()), 6);
  EXPECT_EQ(wc[0].wr_id, 4u);
  EXPECT_EQ(ibv_poll_cq(pair.a.send_cq(), 16, wc.data()), 0);
}

TEST_P(Completions, OverrunIsReportedByPoll) {
  Pair pair(GetParam(), {}, steady_profile(), 1, 4);
  pair.b.post_recvs(pair.qb, kIn, 128, 8);
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(pair.send({.length = 8, .id = i, .flags = 0}), 0);
  pair.pass(kLong);
  std::vector<ibv_wc> wc(16);
  // Four places: the first completions stay readable, then the queue returns errors.
  EXPECT_EQ(ibv_poll_cq(pair.b.recv_cq(), 16, wc.data()), 4);
  EXPECT_EQ(ibv_poll_cq(pair.b.recv_cq(), 16, wc.data()), -1);
  EXPECT_EQ(ibv_poll_cq(pair.b.recv_cq(), 16, wc.data()), -1);
}

TEST_P(Completions, ExactlyFullQueueDoesNotOverrun) {
  Pair pair(GetParam(), {}, steady_profile(), 1, 8);
  pair.b.post_recvs(pair.qb, kIn, 128, 16);
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(pair.send({.length = 8, .id = i}), 0);
    pair.pass(kLong);
    EXPECT_THAT(pair.a.poll_sends(), SizeIs(8));
    EXPECT_THAT(pair.b.poll_recvs(), SizeIs(8));
  }
}

TEST_P(Completions, ManyWaitInOrderWhileSomeArePolled) {
  Pair pair(GetParam(), depth(1024, 1024));
  pair.b.post_recvs(pair.qb, kIn, 128, 900);
  std::uint64_t next = 0;
  for (int round = 0; round < 9; ++round) {
    for (std::uint64_t i = 0; i < 100; ++i) {
      ASSERT_EQ(pair.send({.length = 8, .id = 100u * static_cast<unsigned>(round) + i, .flags = kSignaled | kInline}),
                0);
    }
    pair.pass(kLong);
    // Poll 30 of every 100, so that more and more wait.
    std::vector<ibv_wc> wc(30);
    ASSERT_EQ(ibv_poll_cq(pair.a.send_cq(), 30, wc.data()), 30);
    for (const ibv_wc& completion : wc) ASSERT_EQ(completion.wr_id, next++);
  }
  for (const ibv_wc& completion : pair.a.poll_sends()) ASSERT_EQ(completion.wr_id, next++);
  EXPECT_EQ(next, 900u);
}

TEST(SharedCompletionQueue, HoldsSendsAndReceivesOfSeveralQps) {
  TwoNodes nodes;
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = nodes.a.send_cq();
  init.cap = QpOptions{}.cap;
  init.qp_type = IBV_QPT_RC;
  ibv_qp* one = nodes.a.provider().create_qp(nodes.a.pd(), &init);
  ibv_qp* two = nodes.a.provider().create_qp(nodes.a.pd(), &init);
  ASSERT_EQ(bring_up(nodes.a, one, {}, 0, two->qp_num), 0);
  ASSERT_EQ(bring_up(nodes.a, two, {}, 0, one->qp_num), 0);
  nodes.a.post_recv(two, kIn, 64, 11);
  nodes.a.post_recv(one, kIn, 64, 12);
  nodes.a.post(one, {.length = 8, .id = 21});
  nodes.a.post(two, {.length = 8, .id = 22});
  nodes.pass(kLong);
  EXPECT_THAT(ids(nodes.a.poll_sends()), testing::UnorderedElementsAre(11, 12, 21, 22));
  // The queue is in use until both QPs are destroyed.
  EXPECT_EQ(nodes.a.provider().destroy_cq(nodes.a.send_cq()), EBUSY);
  EXPECT_EQ(nodes.a.provider().destroy_qp(one), 0);
  EXPECT_EQ(nodes.a.provider().destroy_qp(two), 0);
}

TEST(DestroyedQp, CompletionsAreRemoved) {
  Pair pair(IBV_QPT_UD);
  ibv_qp* other = pair.a.make_qp(IBV_QPT_UD);
  ASSERT_EQ(bring_up(pair.a, other, {}, 0, 0), 0);
  pair.b.post_recvs(pair.qb, kIn, 128, 6);
  for (std::uint64_t i = 0; i < 3; ++i) {
    pair.send({.length = 8, .id = i});
    pair.a.post(other, {.length = 8, .id = 10 + i}, pair.ah, pair.qb->qp_num);
  }
  pair.pass(kLong);
  pair.a.destroy(pair.qa);
  EXPECT_THAT(ids(pair.a.poll_sends()), ElementsAre(10, 11, 12));
  EXPECT_THAT(pair.a.poll_sends(), IsEmpty());
}

}  // namespace
}  // namespace verbscope::test
