// Counts of polls and completions.
#include <gtest/gtest.h>

#include <array>

#include "tests/drivers_patch/traced_rig.hpp"

namespace verbscope::driver {
namespace {

void post_sends(ibv_qp* qp, int count) {
  Send send(IBV_WR_SEND, 64, IBV_SEND_SIGNALED);
  ibv_send_wr* bad = nullptr;
  for (int i = 0; i < count; ++i) ASSERT_EQ(ibv_post_send(qp, &send.wr, &bad), 0);
}

TEST(DriverPolling, CountsBatchesAndEmptyPolls) {
  TracedRig rig;
  const Sums before = summarize_process().whole;
  post_sends(rig.qp.get(), 5);
  EXPECT_EQ(rig.poll(3).size(), 3u);
  EXPECT_EQ(rig.poll(3).size(), 2u);
  EXPECT_EQ(rig.poll(3).size(), 0u);
  const Sums after = summarize_process().whole;
  EXPECT_EQ(after.polls - before.polls, 2u);
  EXPECT_EQ(after.empty_polls - before.empty_polls, 1u);
  EXPECT_EQ(after.polled - before.polled, 5u);
  EXPECT_EQ(after.by_batch[2] - before.by_batch[2], 2u);
  EXPECT_EQ(rig.counted().send_completions, 5u);
  EXPECT_EQ(rig.counted().pcie.exact.dma_write_full_lines, 5u);  // CQEs of 64 bytes
}

TEST(DriverPolling, CountsRecvsWithTheirBytes) {
  TracedRig rig;
  ibv_recv_wr recv{};
  ibv_recv_wr* bad = nullptr;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ibv_post_recv(rig.qp.get(), &recv, &bad), 0);
  post_sends(rig.qp.get(), 2);
  EXPECT_EQ(rig.poll().size(), 6u);
  EXPECT_EQ(rig.counted().received.completions, 4u);
  EXPECT_EQ(rig.counted().send_completions, 2u);
}

TEST(DriverPolling, SamplesTheTimeOfTheFirstRequest) {
  TracedRig rig;
  for (int i = 0; i < 20; ++i) {
    post_sends(rig.qp.get(), 1);
    rig.poll();
  }
  EXPECT_EQ(rig.counted().samples, 1u);
}

TEST(DriverPolling, ArmingAQueueIsOneDoorbell) {
  TracedRig rig;
  const Sums before = summarize_process().whole;
  EXPECT_EQ(ibv_req_notify_cq(rig.cq.get(), 0), rig.device.get()->ops.req_notify_cq(rig.cq.get(), 0));
  EXPECT_EQ(summarize_process().whole.arms - before.arms, 2u);
  EXPECT_EQ(summarize_process().whole.pcie.exact.mmio_doorbells - before.pcie.exact.mmio_doorbells, 2u);
}

// Two queues of one thread, which polls and posts.
TEST(DriverPolling, DistinguishesPollsInPassingFromWaiting) {
  TracedRig rig, other;
  ibv_wc wc{};
  const auto polls = [&wc](ibv_cq* cq, int times) {
    for (int i = 0; i < times; ++i) EXPECT_EQ(ibv_poll_cq(cq, 1, &wc), 0);
  };
  const auto in_passing = [] {
    std::uint64_t count = 0;
    for (const PollUse& use : summarize_process().poll_uses) count += use.in_passing;
    return count;
  };
  Send send(IBV_WR_RDMA_WRITE, 64, 0);
  ibv_send_wr* bad = nullptr;
  const std::uint64_t before = in_passing();
  polls(rig.cq.get(), 1);
  polls(other.cq.get(), 1);
  EXPECT_EQ(in_passing() - before, 2u);
  polls(rig.cq.get(), 5);  // it waits
  EXPECT_EQ(in_passing() - before, 2u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ibv_post_send(rig.qp.get(), &send.wr, &bad), 0);
    polls(rig.cq.get(), 1);
  }
  EXPECT_EQ(in_passing() - before, 5u);
}

}  // namespace
}  // namespace verbscope::driver
