// Threads that post single requests or poll may run ahead of the engine. Their writes still leave at the thread's time,
// and they see what is visible at that time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/one_sided.hpp"

namespace verbscope::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

constexpr Nanos kWork = std::chrono::microseconds(10);
constexpr int kCore = 13;  // two_nodes.cpp uses the other cores, from 0 upwards

TEST(PostingAhead, WqeLeavesAtThreadTime) {
  OneSided pair;
  const HostProfile& host = pair.profile.host;
  const Picos begin = pair.cluster.now();
  const Picos written = begin + kWork + host.post_call + host.post_wqe;
  std::uint64_t before = 1, after = 0;
  const std::uint64_t lines = pair.cluster.pcie_counts(0).mmio_wc_lines;
  pair.cluster.at(written - Picos(1), [&] { before = pair.cluster.pcie_counts(0).mmio_wc_lines - lines; });
  pair.cluster.at(written + Picos(1), [&] { after = pair.cluster.pcie_counts(0).mmio_wc_lines - lines; });
  pair.cluster.add_thread(0, kCore, [&](SimNode& node) {
    node.compute(kWork);
    ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64)), 0);
    EXPECT_EQ(node.now(), written + host.wc_line);
  });
  pair.pass(kLong);
  EXPECT_EQ(before, 0u);
  EXPECT_EQ(after, 1u);  // one line: control, address and data segment of 16 bytes each
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_SUCCESS));
}

TEST(PostingAhead, ThreadStallsWhileWcBuffersWaitForLink) {
  constexpr std::int64_t kPosts = 25;
  Profile profile = steady_profile();
  profile.link.mmio_gap = std::chrono::microseconds(1);  // large enough to dominate
  OneSided pair(IBV_QPT_RC, {}, profile);
  const auto buffers = static_cast<std::int64_t>(profile.host.wc_buffers);
  Picos taken{0};
  pair.cluster.add_thread(0, kCore, [&](SimNode& node) {
    const Picos begin = node.now();
    for (std::int64_t i = 0; i < kPosts; ++i) ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64)), 0);
    taken = node.now() - begin;
  });
  pair.pass(kLong);
  // The last line gets a buffer when the line that used it has left; one leaves per microsecond.
  EXPECT_GE(taken, (kPosts - buffers) * profile.link.mmio_gap);
  EXPECT_LT(taken, (kPosts - buffers + 1) * profile.link.mmio_gap);
  EXPECT_THAT(pair.a.poll_sends(), SizeIs(kPosts));
}

TEST(PostingAhead, DoorbellAndListLeaveAfterEarlierPosts) {
  OneSided pair;
  pair.cluster.add_thread(0, kCore, [&](SimNode& node) {
    ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64, 1)), 0);
    ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64, 2), pair.request(IBV_WR_RDMA_READ, 64, 3)), 0);
    ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64, 4)), 0);
    EXPECT_EQ(ibv_req_notify_cq(pair.a.send_cq(), 0), 0);
    // The thread is in step with the engine now: one line each for the first and the last post, two doorbells.
    EXPECT_EQ(pair.cluster.pcie_counts(0).mmio_wc_lines, 2u);
    EXPECT_EQ(pair.cluster.pcie_counts(0).mmio_doorbells, 2u);
    node.compute(Nanos(1));
  });
  pair.pass(kLong);
  const auto done = pair.a.poll_sends();
  EXPECT_THAT(ids(done), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(statuses(done), Each(IBV_WC_SUCCESS));
}

TEST(PostingAhead, ResetAfterPostCancelsIt) {
  OneSided pair;
  pair.cluster.add_thread(0, kCore, [&](SimNode&) {
    for (std::uint64_t round = 0; round < 100; ++round) {
      ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64, round)), 0);
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_RESET;
      ASSERT_EQ(pair.a.provider().modify_qp(pair.qa, &attr, IBV_QP_STATE), 0);
      ASSERT_EQ(bring_up(pair.a, pair.qa, pair.options, 1, pair.qb->qp_num), 0);
    }
    ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64, 1000)), 0);
  });
  pair.pass(kLong);
  const auto done = pair.a.poll_sends();
  EXPECT_EQ(pair.cluster.pcie_counts(0).mmio_wc_lines, 101u);  // the CPU's writes still happened
  EXPECT_THAT(ids(done), ElementsAre(1000));
  EXPECT_THAT(statuses(done), ElementsAre(IBV_WC_SUCCESS));
}

// Time from the post until a READ's completion is visible, polled each nanosecond without a simulated CPU.
Picos seen_from_outside() {
  OneSided pair;
  EXPECT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64)), 0);
  const Picos begin = pair.cluster.now();
  Picos seen{0};
  for (std::int64_t i = 1; i < 10'000; ++i) {
    pair.cluster.at(begin + Nanos(i), [&pair, &seen, i] {
      ibv_wc wc{};
      if (ibv_poll_cq(pair.a.send_cq(), 1, &wc) == 1) seen = Nanos(i);
    });
  }
  pair.pass(kLong);
  EXPECT_GT(seen, Picos(0));
  return seen;
}

TEST(PollingAhead, FirstPollAfterVisibilityReturnsCompletion) {
  const Picos visible = seen_from_outside();
  for (std::int64_t step = 1; step < 3000; step += 7) {
    OneSided pair;
    ASSERT_EQ(pair.post(pair.request(IBV_WR_RDMA_READ, 64)), 0);
    const Picos begin = pair.cluster.now();
    const Picos each = Nanos(step) + pair.profile.host.poll_call;
    Picos found{0};
    pair.cluster.add_thread(0, kCore, [&](SimNode& node) {
      ibv_wc wc{};
      while (ibv_poll_cq(pair.a.send_cq(), 1, &wc) == 0) node.compute(Nanos(step));
      found = node.now() - begin - pair.profile.host.poll_cqe;
    });
    pair.pass(kLong);
    EXPECT_GT(found, visible - Nanos(1)) << step;
    EXPECT_LT(found, visible + each) << step;
  }
}

}  // namespace
}  // namespace verbscope::test
