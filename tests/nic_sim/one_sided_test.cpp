// WRITE, READ and atomics: their effects on memory, their cost, their failures.
#include "tests/nic_sim/one_sided.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbscope::test {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class WriteOfLength : public testing::TestWithParam<std::tuple<ibv_qp_type, std::uint32_t>> {};

TEST_P(WriteOfLength, WriteArrivesComplete) {
  const auto [type, length] = GetParam();
  OneSided pair(type, {.mtu = IBV_MTU_1024});
  fill(pair.a.memory(kSourceAt), length, 7);
  ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_WRITE, length)), 0);
  const auto done = pair.await(pair.a.send_cq(), 1);
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].opcode, IBV_WC_RDMA_WRITE);
  pair.pass(kLong);
  EXPECT_TRUE(has_pattern(pair.b.memory(kTargetAt), length, 7));
  EXPECT_EQ(pair.cluster.nic_counts(1).writes_received, 1u);
}

INSTANTIATE_TEST_SUITE_P(Write, WriteOfLength,
                         testing::Combine(testing::Values(IBV_QPT_RC, IBV_QPT_UC),
                                          testing::Values(0u, 1u, 64u, 1024u, 1025u, 100'000u)));

class ReadOfLength : public testing::TestWithParam<std::uint32_t> {};

TEST_P(ReadOfLength, ReturnsRemoteBytes) {
  OneSided pair(IBV_QPT_RC, {.mtu = IBV_MTU_1024});
  fill(pair.b.memory(kTargetAt), GetParam(), 9);
  ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, GetParam())), 0);
  const auto done = pair.await(pair.a.send_cq(), 1);
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[0].opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(done[0].byte_len, GetParam());
  EXPECT_TRUE(has_pattern(pair.a.memory(kSourceAt), GetParam(), 9));
}

INSTANTIATE_TEST_SUITE_P(Read, ReadOfLength, testing::Values(0u, 1u, 64u, 1024u, 1025u, 100'000u));

TEST(Atomics, FetchAndAddReturnsOldValue) {
  OneSided pair;
  pair.set_word(pair.b, kTargetAt, 40);
  ASSERT_EQ(pair.post(pair.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 2)), 0);
  const auto done = pair.await(pair.a.send_cq(), 1);
  ASSERT_THAT(statuses(done), ElementsAre(IBV_WC_SUCCESS));
  EXPECT_EQ(done[0].opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(pair.word(pair.a, kSourceAt), 40u);
  pair.pass(kLong);
  EXPECT_EQ(pair.word(pair.b, kTargetAt), 42u);
}

TEST(Atomics, CompareAndSwapSwapsOnlyEqualValue) {
  OneSided pair;
  pair.set_word(pair.b, kTargetAt, 5);
  ASSERT_EQ(pair.post(pair.atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 5, 6)), 0);
  ASSERT_EQ(pair.post(pair.atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 5, 7)), 0);
  const auto done = pair.await(pair.a.send_cq(), 2);
  EXPECT_THAT(statuses(done), ElementsAre(IBV_WC_SUCCESS, IBV_WC_SUCCESS));
  pair.pass(kLong);
  EXPECT_EQ(pair.word(pair.b, kTargetAt), 6u);
  EXPECT_EQ(pair.word(pair.a, kSourceAt), 6u);  // the value that the second found
}

TEST(Atomics, OnOneSlotAreSerialized) {
  OneSided pair;
  for (int i = 0; i < 16; ++i) ASSERT_EQ(pair.post(pair.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1)), 0);
  EXPECT_THAT(pair.await(pair.a.send_cq(), 16), SizeIs(16));
  pair.pass(kLong);
  EXPECT_EQ(pair.word(pair.b, kTargetAt), 16u);
  EXPECT_EQ(pair.cluster.nic_counts(1).atomic_slot_waits, 15u);
}

TEST(RemoteAccess, OutOfBoundsFailsBothSides) {
  OneSided pair;
  ibv_send_wr wr = pair.request(IBV_WR_RDMA_WRITE, 64);
  wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(pair.b.memory(TestNode::kMemory - 63));
  ASSERT_EQ(pair.post(wr), 0);
  EXPECT_THAT(statuses(pair.await(pair.a.send_cq(), 1)), ElementsAre(IBV_WC_REM_ACCESS_ERR));
  EXPECT_EQ(pair.qb->state, IBV_QPS_ERR);
}

TEST(RemoteAccess, MisalignedAtomicIsInvalidRequest) {
  OneSided pair;
  ibv_send_wr wr = pair.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
  wr.wr.atomic.remote_addr += 4;
  ASSERT_EQ(pair.post(wr), 0);
  EXPECT_THAT(statuses(pair.await(pair.a.send_cq(), 1)), ElementsAre(IBV_WC_REM_INV_REQ_ERR));
}

TEST(Immediate, WithWriteConsumesRecv) {
  OneSided pair;
  pair.b.post_recv(pair.qb, 0, 64, 33);
  ibv_send_wr wr = pair.request(IBV_WR_RDMA_WRITE_WITH_IMM, 256);
  wr.imm_data = 0xabcd;
  ASSERT_EQ(pair.post(wr), 0);
  const auto received = pair.await(pair.b.recv_cq(), 1);
  ASSERT_THAT(received, SizeIs(1));
  EXPECT_EQ(received[0].wr_id, 33u);
  EXPECT_EQ(received[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received[0].imm_data, 0xabcdu);
  EXPECT_EQ(received[0].byte_len, 256u);
}

class OutstandingReads : public testing::TestWithParam<std::uint8_t> {};

// With cables of 100 us, a READ takes four cables: two for the request, two for the response. All other times of a READ
// add up to about 2 us. So one group of READs, as large as the limit, leaves per round trip of 400 us. The counters are
// read after three quarters of each round trip, when the requests have arrived and their responses have not. The 2 us
// of 31 earlier round trips shift this by less than a cable.
TEST_P(OutstandingReads, AreAtMostTheLimitOfTheConnection) {
  constexpr std::uint64_t kReads = 32;
  constexpr Picos kCable = std::chrono::microseconds(100), kRoundTrip = 4 * kCable;
  const std::uint64_t limit = GetParam();
  Profile profile = steady_profile();
  profile.fabric.cable = kCable;
  OneSided pair(IBV_QPT_RC, {.reads = GetParam()}, profile);
  for (std::uint64_t i = 0; i < kReads; ++i) ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64)), 0);
  for (std::uint64_t sent = limit; sent <= kReads; sent += limit) {
    pair.pass(sent == limit ? kRoundTrip * 3 / 4 : kRoundTrip);
    EXPECT_EQ(pair.cluster.nic_counts(0).packets_sent, sent);
    EXPECT_EQ(pair.cluster.nic_counts(1).reads_served, sent);
    EXPECT_THAT(pair.a.poll_sends(), SizeIs(sent == limit ? 0 : limit));
  }
  pair.pass(kRoundTrip);
  EXPECT_THAT(pair.a.poll_sends(), SizeIs(limit));
}

INSTANTIATE_TEST_SUITE_P(Limits, OutstandingReads, testing::Values(1, 4, 16));

// On a lossy connection each READ and atomic is executed once.
TEST(LossyConnection, ReadsAndAtomicsAreAnsweredOnce) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Profile profile = steady_profile();
    profile.fabric.loss_probability = 0.03;
    OneSided pair(IBV_QPT_RC, {.timeout = 5, .mtu = IBV_MTU_256}, profile, seed);
    fill(pair.b.memory(kTargetAt + 4096), 2000, 3);
    constexpr int kRounds = 300;
    std::uint64_t expected = 0;
    for (int i = 0; i < kRounds; ++i) {
      ibv_send_wr read = pair.request(IBV_WR_RDMA_READ, 2000);
      read.wr.rdma.remote_addr += 4096;
      pair.sge.addr += 8192;
      ASSERT_EQ(pair.post(read), 0);
      ASSERT_EQ(pair.post(pair.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1)), 0);
      ASSERT_EQ(pair.post(pair.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1)), 0);
      ASSERT_THAT(statuses(pair.await(pair.a.send_cq(), 3, std::chrono::milliseconds(100))),
                  ElementsAre(IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_SUCCESS))
          << "round " << i << " seed " << seed;
      EXPECT_EQ(pair.word(pair.a, kSourceAt), expected + 1);
      expected += 2;
      EXPECT_TRUE(has_pattern(pair.a.memory(8192), 2000, 3));
      std::memset(pair.a.memory(8192), 0, 2000);
    }
    pair.pass(kLong);
    EXPECT_EQ(pair.word(pair.b, kTargetAt), expected);
    EXPECT_GT(pair.cluster.nic_counts(0).packets_resent, 0u);
  }
}

TEST(Latency, SmallReadTakesAboutTwoMicroseconds) {
  for (const char* name : {"cib", "cx3"}) {
    OneSided pair(IBV_QPT_RC, {}, steady_profile(name));
    constexpr int kReads = 200;
    Picos sum{0};
    for (int i = 0; i <= kReads; ++i) {
      const Picos begin = pair.cluster.now();
      Picos when{0};
      ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 32)), 0);
      pair.await(pair.a.send_cq(), 1, kLong, &when);
      if (i > 0) sum += when - begin;  // the first warms the caches
    }
    EXPECT_NEAR(static_cast<double>(sum.count()) / kReads / 1e6, 2.0, 0.4) << name;
  }
}

}  // namespace
}  // namespace verbscope::test
