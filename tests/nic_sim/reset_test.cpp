// QPs that fail, are flushed, are reset and are used again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/one_sided.hpp"

namespace verbscope::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

void go(TestNode& node, ibv_qp* qp, ibv_qp_state to) {
  ibv_qp_attr attr{};
  attr.qp_state = to;
  ASSERT_EQ(node.provider().modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

// Moves both ends from any state back to RTS, with new packet numbers, as real programs do.
void reconnect(Pair& pair) {
  pair.options.psn += 0x10000;
  go(pair.a, pair.qa, IBV_QPS_RESET);
  go(pair.b, pair.qb, IBV_QPS_RESET);
  ASSERT_EQ(bring_up(pair.a, pair.qa, pair.options, 1, pair.qb->qp_num), 0);
  ASSERT_EQ(bring_up(pair.b, pair.qb, pair.options, 0, pair.qa->qp_num), 0);
}

// Sends one message that must arrive, whatever happened before.
void expect_works(Pair& pair, unsigned seed) {
  fill(pair.a.memory(128), 100, seed);
  ASSERT_EQ(pair.b.post_recv(pair.qb, kIn, 256, 1000 + seed), 0);
  ASSERT_EQ(pair.send({.offset = 128, .length = 100, .id = 2000 + seed}), 0);
  pair.pass(std::chrono::microseconds(20));
  const auto received = pair.b.poll_recvs();
  ASSERT_THAT(ids(received), ElementsAre(1000 + seed));
  ASSERT_THAT(statuses(received), ElementsAre(IBV_WC_SUCCESS));
  EXPECT_TRUE(has_pattern(pair.b.memory(kIn + grh_room(pair.qa->qp_type)), 100, seed));
  const auto sent = pair.a.poll_sends();
  ASSERT_THAT(ids(sent), ElementsAre(2000 + seed));
  ASSERT_THAT(statuses(sent), ElementsAre(IBV_WC_SUCCESS));
}

class Reset : public testing::TestWithParam<ibv_qp_type> {};
INSTANTIATE_TEST_SUITE_P(, Reset, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(Reset, ErrFlushesOutstandingRequestsInOrder) {
  Pair pair(GetParam());
  for (std::uint64_t i = 0; i < 5; ++i) pair.a.post_recv(pair.qa, kIn, 64, i);
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_EQ(pair.send({.length = 8, .id = 10 + i, .flags = i % 2 == 0 ? kSignaled : 0}), 0);
  }
  go(pair.a, pair.qa, IBV_QPS_ERR);  // nothing has been sent yet
  pair.pass(kLong);
  const auto sent = pair.a.poll_sends();
  EXPECT_THAT(ids(sent), ElementsAre(10, 11, 12, 13, 14));
  EXPECT_THAT(statuses(sent), Each(IBV_WC_WR_FLUSH_ERR));
  const auto received = pair.a.poll_recvs();
  EXPECT_THAT(ids(received), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(statuses(received), Each(IBV_WC_WR_FLUSH_ERR));
  EXPECT_THAT(pair.b.poll_recvs(), IsEmpty());
}

TEST_P(Reset, RequestsPostedInErrAreFlushed) {
  Pair pair(GetParam());
  go(pair.a, pair.qa, IBV_QPS_ERR);
  ASSERT_EQ(pair.send({.length = 8, .id = 1, .flags = 0}), 0);
  ASSERT_EQ(pair.a.post_recv(pair.qa, kIn, 64, 2), 0);
  pair.pass(kLong);
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_WR_FLUSH_ERR));
  EXPECT_THAT(statuses(pair.a.poll_recvs()), ElementsAre(IBV_WC_WR_FLUSH_ERR));
}

TEST_P(Reset, CompletedUnsignaledSendsAreNotFlushed) {
  Pair pair(GetParam());
  pair.b.post_recvs(pair.qb, kIn, 128, 8);
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(pair.send({.length = 8, .id = i, .flags = 0}), 0);
  pair.pass(kLong);
  ASSERT_THAT(pair.b.poll_recvs(), SizeIs(8));
  go(pair.a, pair.qa, IBV_QPS_ERR);
  pair.pass(kLong);
  EXPECT_THAT(pair.a.poll_sends(), IsEmpty());
}

TEST_P(Reset, ResetDropsAllRequestsSilently) {
  Pair pair(GetParam());
  for (std::uint64_t i = 0; i < 5; ++i) pair.a.post_recv(pair.qa, kIn, 64, i);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(pair.send({.length = 8, .id = 10 + i}), 0);
  go(pair.a, pair.qa, IBV_QPS_RESET);
  pair.pass(kLong);
  EXPECT_THAT(pair.a.poll_sends(), IsEmpty());
  EXPECT_THAT(pair.a.poll_recvs(), IsEmpty());
}

TEST_P(Reset, QpWorksAfterResetAtAnyTime) {
  // At the reset, messages with payload to read, inline messages, and RECVs to fetch are in progress.
  for (std::int64_t moment = 0; moment < 2500; moment += 50) {
    Pair pair(GetParam());
    for (unsigned round = 0; round < 3; ++round) {
      pair.b.post_recvs(pair.qb, kIn, 4200, 5);
      ASSERT_EQ(pair.send_list({.length = 4096, .id = 1}, 2), 0);
      ASSERT_EQ(pair.send({.length = 64, .id = 2, .flags = kSignaled | kInline}), 0);
      pair.pass(Nanos(moment));
      reconnect(pair);
      // On UC and UD, packets that were on the wire may still arrive.
      pair.pass(std::chrono::microseconds(20));
      pair.b.poll_recvs();
      pair.a.poll_sends();
      reconnect(pair);
      expect_works(pair, round);
      if (testing::Test::HasFatalFailure()) FAIL() << "reset after " << moment << " ns, round " << round;
    }
  }
}

TEST_P(Reset, EarlierWorkDoesNotAffectQpAfterReset) {
  for (std::int64_t moment = 0; moment < 2500; moment += 50) {
    Pair pair(GetParam());
    pair.b.post_recvs(pair.qb, kIn, 8192, 4);
    fill(pair.a.memory(0), 4096, 1);
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(pair.send({.length = 4096, .id = i}), 0);
    pair.pass(Nanos(moment));
    reconnect(pair);
    // Shorter messages in the places of the old ones. On UC and UD, old packets may still arrive.
    pair.b.post_recvs(pair.qb, kIn + 64 * 1024, 8192, 16);
    fill(pair.a.memory(8192), 64, 2);
    for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(pair.send({.offset = 8192, .length = 64, .id = 10 + i}), 0);
    pair.pass(kLong);
    const auto sent = pair.a.poll_sends();
    EXPECT_THAT(ids(sent), ElementsAre(10, 11, 12)) << moment;
    EXPECT_THAT(statuses(sent), Each(IBV_WC_SUCCESS)) << moment;
    std::uint64_t new_ones = 0;
    for (const ibv_wc& wc : pair.b.poll_recvs()) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS) << moment;
      const std::uint32_t length = wc.byte_len - grh_room(GetParam());
      const std::uint8_t* message = pair.b.memory(kIn + 64 * 1024 + wc.wr_id * 8192 + grh_room(GetParam()));
      if (length == 64) {
        EXPECT_TRUE(has_pattern(message, 64, 2)) << moment;
        ++new_ones;
      }
    }
    EXPECT_EQ(new_ones, 3u) << moment;
  }
}

TEST_P(Reset, EarlierRecvsAreDropped) {
  Pair pair(GetParam(), {.rnr_retries = 0});
  pair.b.post_recvs(pair.qb, kIn, 256, 16);
  reconnect(pair);  // they are still being fetched
  pair.pass(kLong);
  fill(pair.a.memory(), 64, 1);
  ASSERT_EQ(pair.send({.length = 64}), 0);
  pair.pass(kLong);
  EXPECT_THAT(pair.b.poll_recvs(), IsEmpty());
  EXPECT_EQ(*pair.b.memory(kIn + grh_room(GetParam())), 0) << "written into a buffer that was taken back";
  if (GetParam() == IBV_QPT_RC) {
    EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_RNR_RETRY_EXC_ERR));
  } else {
    EXPECT_EQ(pair.cluster.nic_counts(1).dropped_no_recv, 1u);
  }
}

TEST(Recovery, FailedQpRecoversManyTimes) {
  // A WQE cache of four blocks: leftovers of failed requests would fill it.
  Profile profile = steady_profile();
  profile.nic.wqe_cache = Bytes(256);
  Pair pair(IBV_QPT_RC, {.rnr_retries = 0}, profile);
  for (unsigned round = 0; round < 50; ++round) {
    ASSERT_EQ(pair.send({.length = 8, .flags = kSignaled | kInline}), 0);  // no RECV
    ASSERT_EQ(pair.send({.length = 8, .flags = kSignaled | kInline}), 0);
    pair.pass(std::chrono::microseconds(20));
    EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR));
    reconnect(pair);
    expect_works(pair, round);
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "round " << round;
  }
  // A single request always fits into the cache.
  const NicCounts before = pair.cluster.nic_counts(0);
  for (unsigned i = 0; i < 10; ++i) expect_works(pair, i);
  EXPECT_EQ(pair.cluster.nic_counts(0).wqe_cache_misses, before.wqe_cache_misses);
}

TEST(Recovery, PacketsInLineWhenAQpFailsDoNotDelayLaterAnswers) {
  Profile profile = steady_profile();
  profile.nic.receive_packet = std::chrono::microseconds(2);  // so that a queue forms
  Pair pair(IBV_QPT_RC, {}, profile);
  pair.b.post_recv(pair.qb, kIn, 4);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(pair.send({.length = 8}), 0);  // the first is too long
  pair.pass(kLong);
  EXPECT_THAT(pair.a.poll_sends(), SizeIs(8));
  pair.b.poll_recvs();
  reconnect(pair);
  expect_works(pair, 1);  // acknowledged within 20 us
}

TEST(Recovery, AGapAfterAReconnectIsReportedAgain) {
  // The first connection ends with a refusal; the second must again report a missing RECV.
  Pair pair(IBV_QPT_RC, {.rnr_retries = 0});
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(pair.send({.length = 8}), 0);
    pair.pass(std::chrono::microseconds(20));
    EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_RNR_RETRY_EXC_ERR));
    reconnect(pair);
  }
}

TEST(LocalError, EarlierRequestsSucceed) {
  // UD: the first three are on the wire long before the fourth, whose memory is not registered, is processed.
  Pair pair(IBV_QPT_UD);
  pair.b.post_recvs(pair.qb, kIn, 128, 8);
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(pair.send({.length = 8, .id = i, .flags = kInline}), 0);
  pair.pass(std::chrono::microseconds(20));
  ASSERT_EQ(pair.send({.offset = TestNode::kMemory, .length = 8, .id = 3}), 0);
  pair.pass(kLong);
  EXPECT_THAT(pair.b.poll_recvs(), SizeIs(3));
  const auto sent = pair.a.poll_sends();
  EXPECT_THAT(ids(sent), ElementsAre(3)) << "the others were not signaled";
  EXPECT_THAT(statuses(sent), ElementsAre(IBV_WC_LOC_PROT_ERR));
}

Profile one_requester_unit() {
  Profile profile = steady_profile();
  profile.nic.requester_units = 1;
  return profile;
}

// WQEs without inline data in lists go by doorbell, so as many as fit are fetched ahead.
QpOptions for_lists(std::uint32_t depth) {
  return {.cap = {.max_send_wr = depth, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0}};
}

TEST(Neighbours, QpWaitingForReceiverDoesNotBlockItsUnit) {
  // The first QP's WQEs use up the unit's fetch-ahead share, and its peer has no RECV.
  Pair waiting(IBV_QPT_RC, for_lists(128), one_requester_unit());
  ibv_qp* from = waiting.a.make_qp(IBV_QPT_UD);
  ibv_qp* to = waiting.b.make_qp(IBV_QPT_UD);
  ASSERT_EQ(bring_up(waiting.a, from, {}, 0, 0), 0);
  ASSERT_EQ(bring_up(waiting.b, to, {}, 0, 0), 0);
  for (int i = 0; i < 8; ++i) ASSERT_EQ(waiting.send_list({.length = 8}, 16), 0);  // 8 KB of WQEs; the share is 4 KB
  waiting.pass(kLong);
  waiting.b.post_recvs(to, kIn, 128, 2);
  ASSERT_EQ(waiting.a.post_list(from, {.length = 8, .id = 5}, 2, waiting.a.make_ah(1), to->qp_num), 0);
  waiting.pass(kLong);
  EXPECT_THAT(waiting.b.poll_recvs(), SizeIs(2));
  EXPECT_THAT(ids(waiting.a.poll_sends()), ElementsAre(5, 6));
}

// When a QP is reset or destroyed, its part of the unit's fetch-ahead share is free again.
TEST(Neighbours, ResetOrDestroyedQpReturnsItsFetchShare) {
  for (const bool destroys : {false, true}) {
    Pair pair(IBV_QPT_RC, for_lists(512), one_requester_unit());
    for (int i = 0; i < 24; ++i) ASSERT_EQ(pair.send_list({.length = 8}, 16), 0);
    pair.pass(Nanos(800));
    if (destroys) {
      pair.a.destroy(pair.qa);
      pair.qa = pair.a.make_qp(IBV_QPT_RC, pair.options);
    }
    reconnect(pair);
    ASSERT_EQ(pair.b.post_recvs(pair.qb, kIn, 64, 16), 0);
    ASSERT_EQ(pair.send_list({.length = 8, .id = 1}, 2), 0);
    pair.pass(kLong);
    EXPECT_THAT(ids(pair.a.poll_sends()), ElementsAre(1, 2)) << (destroys ? "destroyed" : "reset");
  }
}

// A response or an atomic of the previous connection has no effect on the new one.
TEST(ResetOfTheResponder, EndsAReadThatIsBeingAnswered) {
  OneSided pair(IBV_QPT_RC, {.mtu = IBV_MTU_1024});
  ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 256 * 1024)), 0);
  pair.pass(std::chrono::microseconds(6));
  reconnect(pair);
  pair.pass(kLong);
  EXPECT_THAT(pair.a.poll_sends(), IsEmpty());
  ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64)), 0);
  pair.pass(kLong);
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_SUCCESS));
}

TEST(ResetOfTheResponder, EndsAtomicsThatWaitForTheirSlot) {
  for (int moment = 500; moment < 4000; moment += 100) {
    Profile profile = steady_profile();
    profile.nic.atomic_operation = std::chrono::microseconds(1);
    OneSided pair(IBV_QPT_RC, {}, profile);
    for (int i = 0; i < 8; ++i) ASSERT_EQ(pair.post(pair.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1)), 0);
    pair.pass(Nanos(moment));
    reconnect(pair);
    pair.pass(kLong);
    pair.a.poll_sends();
    ASSERT_EQ(pair.post(pair.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1)), 0);
    pair.pass(kLong);
    ASSERT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_SUCCESS)) << "reset after " << moment << " ns";
  }
}

}  // namespace
}  // namespace verbscope::test
