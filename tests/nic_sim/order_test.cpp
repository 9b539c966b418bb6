// The order in which the requests of a QP take effect, and that data are in memory before their completion is visible.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/one_sided.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Order, SendAfterWriteOverwritesIt) {
  OneSided pair;
  std::memset(pair.a.memory(kSourceAt), 0xaa, 4096);
  ASSERT_EQ(pair.b.post_recv(pair.qb, kTargetAt, 64, 1), 0);
  ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_WRITE, 4096)), 0);
  std::memset(pair.a.memory(8192), 0xbb, 64);
  ASSERT_EQ(pair.send({.offset = 8192, .length = 64}), 0);
  pair.pass(kLong);
  EXPECT_THAT(pair.a.poll_sends(), SizeIs(2));
  EXPECT_EQ(*pair.b.memory(kTargetAt), 0xbb);
  EXPECT_EQ(*pair.b.memory(kTargetAt + 64), 0xaa);
}

// A program that computes between its polls finds the completion late, but never before the data.
TEST(Order, DataAreInMemoryBeforeCompletion) {
  for (int work = 50; work <= 300; work += 50) {
    for (int start = 0; start < 400; start += 20) {
      OneSided pair;
      ASSERT_EQ(pair.b.post_recv(pair.qb, kIn, 64, 1), 0);
      pair.pass(std::chrono::microseconds(5));
      *pair.a.memory(kSourceAt) = 0x77;
      ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_WRITE_WITH_IMM, 64)), 0);
      int seen = -1;
      pair.cluster.add_thread(1, 0, [&](SimNode& node) {
        node.compute(Nanos(start));
        ibv_wc wc{};
        while (ibv_poll_cq(pair.b.recv_cq(), 1, &wc) == 0) node.compute(Nanos(work));
        seen = *pair.b.memory(kTargetAt);
      });
      pair.cluster.run();
      ASSERT_EQ(seen, 0x77) << "polls every " << work << " ns from " << start << " ns on";
    }
  }
}

// Without a WQE cache, the first WQE is being read again for its completion when the refusal of the second arrives.
Profile without_wqe_cache() {
  Profile profile = steady_profile();
  profile.nic.wqe_cache = Bytes(0);
  return profile;
}

TEST(Refusal, FailsTheRefusedRequest) {
  OneSided pair(IBV_QPT_RC, {}, without_wqe_cache());
  ibv_send_wr refused = pair.request(IBV_WR_RDMA_WRITE, 64, 2);
  refused.wr.rdma.rkey ^= 0xdead00;
  ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_WRITE, 64, 1), refused), 0);
  pair.pass(kLong);
  const auto done = pair.a.poll_sends();
  EXPECT_THAT(ids(done), ElementsAre(1, 2));
  EXPECT_THAT(statuses(done), ElementsAre(IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR));
}

TEST(Refusal, WithoutRecvFailsTheRequestThatNeedsIt) {
  OneSided pair(IBV_QPT_RC, {.rnr_retries = 0}, without_wqe_cache());
  ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_WRITE, 64, 1), pair.request(IBV_WR_SEND, 64, 2)), 0);
  pair.pass(kLong);
  const auto done = pair.a.poll_sends();
  EXPECT_THAT(ids(done), ElementsAre(1, 2));
  EXPECT_THAT(statuses(done), ElementsAre(IBV_WC_SUCCESS, IBV_WC_RNR_RETRY_EXC_ERR));
}

// A WQE that is read again meanwhile does not end the wait (10.24 ms, code 20 of the RNR NAK timer field).
TEST(Refusal, WithoutRecvIsRetriedAfterWholeRnrTime) {
  for (const std::uint64_t cache : {0, 256}) {
    for (int count = 1; count < 40; ++count) {
      Profile profile = steady_profile();
      profile.nic.wqe_cache = Bytes(cache);
      Pair pair(IBV_QPT_RC, {.rnr_retries = 1, .min_rnr_timer = 20}, profile);
      ASSERT_EQ(pair.send_list({.length = 64}, count), 0);
      pair.pass(std::chrono::milliseconds(5));
      ASSERT_EQ(pair.cluster.nic_counts(1).rnr_naks_sent, 1u) << count << " SENDs, a cache of " << cache << " bytes";
      ASSERT_THAT(pair.a.poll_sends(), IsEmpty());
    }
  }
}

TEST(Refusal, OfLocalBufferDoesNotAffectOtherQps) {
  OneSided pair;
  ibv_qp* other = pair.a.make_qp(IBV_QPT_UD);
  ASSERT_EQ(bring_up(pair.a, other, {}, 0, 0), 0);
  ibv_ah* ah = pair.a.make_ah(1);
  const auto lines_of_a_send = [&] {
    const std::uint64_t before = pair.cluster.pcie_counts(0).dma_read_lines;
    EXPECT_EQ(pair.a.post(other, {.length = 64}, ah, 0x7777), 0);
    pair.pass(kLong);
    EXPECT_THAT(pair.a.poll_sends(), SizeIs(1));
    return pair.cluster.pcie_counts(0).dma_read_lines - before;
  };
  lines_of_a_send();  // reads contexts and translations for the first time
  const std::uint64_t expected = lines_of_a_send();
  ibv_sge sges[3] = {pair.a.sge(0, 64), pair.a.sge(64, 64), pair.a.sge(128, 64)};
  sges[2].lkey ^= 0x5a00;
  ibv_send_wr wr = pair.request(IBV_WR_RDMA_WRITE, 64);
  wr.sg_list = sges;
  wr.num_sge = 3;
  ASSERT_EQ(pair.post(wr), 0);
  pair.pass(kLong);
  ASSERT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_LOC_PROT_ERR));
  EXPECT_EQ(lines_of_a_send(), expected);
}

}  // namespace
}  // namespace verbscope::test
