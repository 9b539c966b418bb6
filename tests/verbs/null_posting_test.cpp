// Posting to the null device by ibv_post_send and ibv_post_recv: accepted and refused requests, their completions, and
// a data path without allocations.
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

#include "tests/verbs/count_allocations.hpp"
#include "tests/verbs/null_rig.hpp"

namespace verbscope {
namespace {

// A rig with SENDs of 64 bytes, the limit of inline data.
struct PostingRig : NullRig {
  explicit PostingRig(Transport transport, int cq_entries = 2 * kDepth)
      : NullRig({.transport = transport, .max_inline = 64}, cq_entries) {}

  ibv_send_wr send(std::uint64_t id, bool signaled = true) {
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
    wr.wr.ud.ah = ah.get();
    return wr;
  }
  int post(ibv_send_wr wr) { return ibv_post_send(qp.get(), &wr, &bad); }

  ibv_sge sge{.addr = 0, .length = 64, .lkey = 0};
  ibv_send_wr* bad = nullptr;
};

TEST(NullDevice, SignaledSendsCompleteInOrderAtOnce) {
  PostingRig rig(Transport::rc);
  ibv_send_wr third = rig.send(3);
  ibv_send_wr second = rig.send(2, false);
  ibv_send_wr first = rig.send(1);
  first.next = &second;
  second.next = &third;
  ASSERT_EQ(ibv_post_send(rig.qp.get(), &first, &rig.bad), 0);
  const auto done = rig.poll();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].wr_id, 1u);
  EXPECT_EQ(done[1].wr_id, 3u);
  for (const ibv_wc& wc : done) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_SEND);
    EXPECT_EQ(wc.qp_num, rig.qp.number());
  }
  EXPECT_TRUE(rig.poll().empty());
}

TEST(NullDevice, PollReturnsAtMostTheRequestedNumber) {
  PostingRig rig(Transport::uc);
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(rig.post(rig.send(i)), 0);
  EXPECT_EQ(rig.poll(3).size(), 3u);
  EXPECT_EQ(rig.poll(3).size(), 2u);
}

TEST(NullDevice, FullSendQueueReturnsTheBadWorkRequest) {
  PostingRig rig(Transport::rc);
  std::array<ibv_send_wr, kDepth + 1> list;
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = rig.send(i);
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  EXPECT_EQ(ibv_post_send(rig.qp.get(), list.data(), &rig.bad), ENOMEM);
  EXPECT_EQ(rig.bad, &list[kDepth]);
  EXPECT_EQ(rig.poll().size(), std::size_t{kDepth});
  EXPECT_EQ(rig.post(rig.send(0)), 0);
}

TEST(NullDevice, UnsignaledSlotsAreFreedByALaterCompletion) {
  PostingRig rig(Transport::rc);
  for (std::uint64_t i = 0; i < kDepth; ++i) ASSERT_EQ(rig.post(rig.send(i, i == 3)), 0);
  EXPECT_EQ(rig.post(rig.send(0)), ENOMEM);  // nothing polled yet
  EXPECT_EQ(rig.poll().size(), 1u);          // frees 0..3
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(rig.post(rig.send(i, false)), 0);
  EXPECT_EQ(rig.post(rig.send(0, false)), ENOMEM);  // a program that never signals gets stuck, as on a device
}

TEST(NullDevice, SignalAllNeedsNoFlag) {
  PostingRig rig(Transport::rc);
  Qp qp(rig.pd, rig.options({.signal_all = true}));
  bring_up(qp);
  ibv_send_wr wr = rig.send(4, false);
  ASSERT_EQ(ibv_post_send(qp.get(), &wr, &rig.bad), 0);
  EXPECT_EQ(rig.poll().size(), 1u);
}

TEST(NullDevice, RecvsCompleteWithTheLengthOfTheirBuffer) {
  PostingRig rig(Transport::ud);
  std::array<ibv_sge, 1> buffers = {ibv_sge{.addr = 0, .length = 104, .lkey = 0}};
  ibv_recv_wr wr{.wr_id = 9, .next = nullptr, .sg_list = buffers.data(), .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  for (int i = 0; i < kDepth; ++i) ASSERT_EQ(ibv_post_recv(rig.qp.get(), &wr, &bad), 0);
  EXPECT_EQ(ibv_post_recv(rig.qp.get(), &wr, &bad), ENOMEM);
  const auto done = rig.poll();
  ASSERT_EQ(done.size(), std::size_t{kDepth});
  EXPECT_EQ(done[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(done[0].wr_id, 9u);
  EXPECT_EQ(done[0].byte_len, 104u);
  EXPECT_EQ(ibv_post_recv(rig.qp.get(), &wr, &bad), 0);
}

TEST(NullDevice, InlineLimitAppliesToInlineSendsOnly) {
  PostingRig rig(Transport::rc);
  rig.sge.length = 65;
  ibv_send_wr wr = rig.send(1);
  EXPECT_EQ(rig.post(wr), 0);
  wr.send_flags |= IBV_SEND_INLINE;
  EXPECT_EQ(rig.post(wr), ENOMEM);
  rig.sge.length = 64;
  EXPECT_EQ(rig.post(wr), 0);
}

TEST(NullDevice, RejectsTooManySges) {
  PostingRig rig(Transport::rc);
  std::array<ibv_sge, 2> two{};
  ibv_send_wr wr = rig.send(1);
  wr.sg_list = two.data();
  wr.num_sge = 2;
  EXPECT_NE(rig.post(wr), 0);
}

TEST(NullDevice, RejectsVerbsThatTheTransportLacks) {
  const auto accepts = [](Transport transport, ibv_wr_opcode opcode) {
    PostingRig rig(transport);
    ibv_send_wr wr = rig.send(1);
    wr.opcode = opcode;
    if (opcode != IBV_WR_SEND) wr.wr.ud = {};
    if (opcode == IBV_WR_SEND_WITH_IMM) wr.wr.ud.ah = rig.ah.get();
    return rig.post(wr) == 0;
  };
  // IBTA vol. 1, table "Service types and operations": SEND everywhere, WRITE not on UD, READ and atomics on RC only.
  for (const Transport transport : {Transport::rc, Transport::uc, Transport::ud}) {
    EXPECT_TRUE(accepts(transport, IBV_WR_SEND));
    EXPECT_TRUE(accepts(transport, IBV_WR_SEND_WITH_IMM));
    EXPECT_EQ(accepts(transport, IBV_WR_RDMA_WRITE), transport != Transport::ud);
    EXPECT_EQ(accepts(transport, IBV_WR_RDMA_READ), transport == Transport::rc);
    EXPECT_EQ(accepts(transport, IBV_WR_ATOMIC_FETCH_AND_ADD), transport == Transport::rc);
  }
}

TEST(NullDevice, CompletionsNameTheOperation) {
  PostingRig rig(Transport::rc);
  // ibv_poll_cq(3): the opcodes of completions.
  const std::vector<std::pair<ibv_wr_opcode, ibv_wc_opcode>> opcodes = {
      {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
      {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
      {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
      {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
      {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
      {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD}};
  for (const auto& [posted, completed] : opcodes) {
    ibv_send_wr wr = rig.send(1);
    wr.opcode = posted;
    ASSERT_EQ(rig.post(wr), 0);
    const auto done = rig.poll();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].opcode, completed);
  }
}

TEST(NullDevice, UdNeedsAnAddressHandle) {
  PostingRig rig(Transport::ud);
  ibv_send_wr wr = rig.send(1);
  wr.wr.ud.ah = nullptr;
  EXPECT_EQ(rig.post(wr), EINVAL);
}

TEST(NullDevice, RefusesPostsBeforeRts) {
  PostingRig rig(Transport::rc);
  Qp qp(rig.pd, rig.options());
  ibv_send_wr wr = rig.send(1);
  EXPECT_EQ(ibv_post_send(qp.get(), &wr, &rig.bad), EINVAL);
  ibv_recv_wr recv{};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(qp.get(), &recv, &bad), EINVAL);
  qp.to_init({});
  EXPECT_EQ(ibv_post_recv(qp.get(), &recv, &bad), 0);
}

TEST(NullDevice, RefusesToOverrunTheCompletionQueue) {
  PostingRig rig(Transport::rc, 2);
  EXPECT_EQ(rig.post(rig.send(1)), 0);
  EXPECT_EQ(rig.post(rig.send(2)), 0);
  EXPECT_EQ(rig.post(rig.send(3)), ENOMEM);
  EXPECT_EQ(rig.post(rig.send(4, false)), 0);
}

TEST(NullDevice, DestroyedQpLeavesNoCompletions) {
  PostingRig rig(Transport::rc);
  ASSERT_EQ(rig.post(rig.send(1)), 0);
  {
    Qp other(rig.pd, rig.options());
    bring_up(other);
    ibv_send_wr wr = rig.send(2);
    ASSERT_EQ(ibv_post_send(other.get(), &wr, &rig.bad), 0);
  }
  const auto done = rig.poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 1u);
}

TEST(NullDevice, ResetEmptiesTheQueues) {
  PostingRig rig(Transport::rc);
  for (std::uint64_t i = 0; i < kDepth; ++i) ASSERT_EQ(rig.post(rig.send(i)), 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  ASSERT_EQ(rig.provider.modify_qp(rig.qp.get(), &attr, IBV_QP_STATE), 0);
  EXPECT_TRUE(rig.poll().empty());
  bring_up(rig.qp);
  EXPECT_EQ(rig.post(rig.send(1)), 0);
}

#ifdef VERBSCOPE_COUNT_ALLOCATIONS
TEST(NullDevice, DataPathAllocatesNothing) {
  PostingRig rig(Transport::ud);
  ibv_send_wr wr = rig.send(1);
  ibv_recv_wr recv{.wr_id = 2, .next = nullptr, .sg_list = &rig.sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  std::array<ibv_wc, 4> completions;
  int polled = 0;
  const std::size_t before = allocations_of_this_thread();
  EXPECT_GT(before, 0u);  // the counter counts
  for (int i = 0; i < 1000; ++i) {
    ibv_post_send(rig.qp.get(), &wr, &rig.bad);
    ibv_post_recv(rig.qp.get(), &recv, &bad);
    polled += ibv_poll_cq(rig.cq.get(), 4, completions.data());
  }
  EXPECT_EQ(allocations_of_this_thread(), before);
  EXPECT_EQ(polled, 2000);
}
#endif

// A packet follows the 40 bytes of its GRH (InfiniBand specification, volume 1, 11.4.2.1).
TEST(NullDevice, HeldRecvsCompleteWhenPacketsAreDelivered) {
  PostingRig rig(Transport::ud);
  null_hold_recvs(rig.qp.get());
  std::array<std::array<std::byte, 48>, kDepth> memory{};
  const auto post = [&](std::size_t place) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(memory[place].data()), 48, 0};
    ibv_recv_wr wr{.wr_id = place, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(rig.qp.get(), &wr, &bad);
  };
  for (std::size_t i = 0; i < kDepth; ++i) ASSERT_EQ(post(i), 0);
  EXPECT_NE(post(0), 0) << "the receive queue is full";
  EXPECT_TRUE(rig.poll().empty());

  const std::size_t before = allocations_of_this_thread();
  const std::array<std::byte, 8> packet{std::byte{7}};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(null_deliver(rig.qp.get(), std::span(packet).first(8 - i)));
  EXPECT_EQ(allocations_of_this_thread(), before);
  const auto done = rig.poll();
  ASSERT_EQ(done.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(done[i].wr_id, i);
    EXPECT_EQ(done[i].opcode, IBV_WC_RECV);
    EXPECT_EQ(done[i].byte_len, 48 - i);
    EXPECT_EQ(memory[i][40], std::byte{7});
  }
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(post(i), 0) << "polled RECVs have left the queue";
  EXPECT_NE(post(3), 0);
}

TEST(NullDevice, DeliversNothingWithoutARecvOrIntoAShortOne) {
  PostingRig rig(Transport::ud);
  null_hold_recvs(rig.qp.get());
  const std::array<std::byte, 9> packet{};
  EXPECT_FALSE(null_deliver(rig.qp.get(), packet));
  std::array<std::byte, 48> memory{};
  ibv_sge sge{reinterpret_cast<std::uint64_t>(memory.data()), 48, 0};
  ibv_recv_wr wr{.wr_id = 1, .next = nullptr, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(rig.qp.get(), &wr, &bad), 0);
  EXPECT_FALSE(null_deliver(rig.qp.get(), packet));
  EXPECT_TRUE(rig.poll().empty());
}

}  // namespace
}  // namespace verbscope
