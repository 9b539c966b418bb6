// The ibv_wr_* interface of the null device.
#include <gtest/gtest.h>

#include <array>

#include "tests/verbs/count_allocations.hpp"
#include "tests/verbs/null_rig.hpp"

namespace verbscope {
namespace {

// A rig whose QP has the builder interface.
struct Rig : NullRig {
  explicit Rig(Transport transport, int cq_entries = 2 * kDepth)
      : NullRig({.transport = transport, .send_sge = 2, .max_inline = 64, .builder = true}, cq_entries) {}

  void send(std::uint64_t id, bool signaled = true) {
    wr->wr_id = id;
    wr->wr_flags = signaled ? IBV_SEND_SIGNALED : 0;
    ibv_wr_send(wr);
    ibv_wr_set_sge(wr, 0, 0, 64);
  }
  int send_all(std::uint64_t first, std::uint64_t count, bool signaled = true) {
    ibv_wr_start(wr);
    for (std::uint64_t i = 0; i < count; ++i) send(first + i, signaled);
    return ibv_wr_complete(wr);
  }

  ibv_qp_ex* wr = qp.builder();
};

TEST(NullBuilder, CompletionsNameRequestAndOperation) {
  Rig rig(Transport::rc);
  ibv_wr_start(rig.wr);
  rig.wr->wr_flags = IBV_SEND_SIGNALED;
  std::uint64_t id = 0;
  const auto next = [&] { rig.wr->wr_id = ++id; };
  next(), ibv_wr_send(rig.wr);
  next(), ibv_wr_send_imm(rig.wr, 1);
  next(), ibv_wr_rdma_write(rig.wr, 1, 2);
  next(), ibv_wr_rdma_write_imm(rig.wr, 1, 2, 3);
  next(), ibv_wr_rdma_read(rig.wr, 1, 2);
  next(), ibv_wr_atomic_cmp_swp(rig.wr, 1, 2, 3, 4);
  next(), ibv_wr_atomic_fetch_add(rig.wr, 1, 2, 3);
  EXPECT_EQ(ibv_wr_complete(rig.wr), 0);
  const auto done = rig.poll();
  // ibv_poll_cq(3): the opcodes of completions.
  const std::array opcodes = {IBV_WC_SEND,      IBV_WC_SEND,      IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE,
                              IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD};
  ASSERT_EQ(done.size(), opcodes.size());
  for (std::size_t i = 0; i < opcodes.size(); ++i) {
    EXPECT_EQ(done[i].wr_id, i + 1);
    EXPECT_EQ(done[i].opcode, opcodes[i]);
    EXPECT_EQ(done[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(done[i].qp_num, rig.qp.number());
  }
}

TEST(NullBuilder, UnsignaledSlotsAreFreedByALaterCompletion) {
  Rig rig(Transport::rc);
  EXPECT_EQ(rig.send_all(0, 3, false), 0);
  EXPECT_EQ(rig.send_all(3, 1), 0);
  EXPECT_EQ(rig.send_all(4, 4, false), 0);
  EXPECT_EQ(rig.send_all(8, 1), ENOMEM);
  EXPECT_EQ(rig.poll().size(), 1u);  // frees 0..3
  EXPECT_EQ(rig.send_all(8, 5), ENOMEM);
  EXPECT_EQ(rig.send_all(8, 4), 0);
}

TEST(NullBuilder, PostsAllOrNothing) {
  Rig rig(Transport::rc);
  EXPECT_EQ(rig.send_all(0, kDepth + 1), ENOMEM);
  ibv_wr_start(rig.wr);
  rig.send(1);
  ibv_wr_send(rig.wr);
  ibv_wr_set_inline_data(rig.wr, nullptr, 65);
  EXPECT_EQ(ibv_wr_complete(rig.wr), ENOMEM);
  const std::array<ibv_data_buf, 2> halves = {ibv_data_buf{nullptr, 33}, ibv_data_buf{nullptr, 32}};
  ibv_wr_start(rig.wr);
  rig.send(1);
  ibv_wr_send(rig.wr);
  ibv_wr_set_inline_data_list(rig.wr, halves.size(), halves.data());
  EXPECT_EQ(ibv_wr_complete(rig.wr), ENOMEM);
  std::array<ibv_sge, 3> three{};
  ibv_wr_start(rig.wr);
  rig.send(1);
  ibv_wr_send(rig.wr);
  ibv_wr_set_sge_list(rig.wr, three.size(), three.data());
  EXPECT_NE(ibv_wr_complete(rig.wr), 0);
  EXPECT_TRUE(rig.poll().empty());
  EXPECT_EQ(rig.send_all(0, kDepth), 0);
}

TEST(NullBuilder, AbortDiscardsThePost) {
  Rig rig(Transport::rc);
  ibv_wr_start(rig.wr);
  rig.send(1);
  ibv_wr_abort(rig.wr);
  EXPECT_TRUE(rig.poll().empty());
  EXPECT_EQ(rig.send_all(2, kDepth), 0);
  EXPECT_EQ(rig.poll().size(), std::size_t{kDepth});
}

TEST(NullBuilder, RefusesToOverrunTheCompletionQueue) {
  Rig rig(Transport::rc, 2);
  EXPECT_EQ(rig.send_all(0, 3), ENOMEM);
  EXPECT_EQ(rig.send_all(0, 2), 0);
}

TEST(NullBuilder, DatagramsNeedAnAddress) {
  Rig rig(Transport::ud);
  EXPECT_EQ(rig.wr->wr_rdma_write, nullptr);
  ibv_wr_start(rig.wr);
  rig.send(1);
  ibv_wr_set_ud_addr(rig.wr, rig.ah.get(), 1, 1);
  EXPECT_EQ(ibv_wr_complete(rig.wr), 0);
  ibv_wr_start(rig.wr);
  rig.send(1);
  ibv_wr_set_ud_addr(rig.wr, nullptr, 1, 1);
  EXPECT_EQ(ibv_wr_complete(rig.wr), EINVAL);
}

TEST(NullBuilder, RefusesAQpThatIsNotInRts) {
  Rig rig(Transport::rc);
  rig.qp.to_error();
  EXPECT_EQ(rig.send_all(0, 1), EINVAL);
}

#ifdef VERBSCOPE_COUNT_ALLOCATIONS
TEST(NullBuilder, AllocatesNothing) {
  Rig rig(Transport::rc);
  std::array<ibv_wc, kDepth> completions;
  int polled = 0;
  const std::size_t before = allocations_of_this_thread();
  for (int i = 0; i < 1000; ++i) {
    rig.send_all(0, kDepth);
    polled += ibv_poll_cq(rig.cq.get(), kDepth, completions.data());
  }
  EXPECT_EQ(allocations_of_this_thread(), before);
  EXPECT_EQ(polled, 1000 * kDepth);
}
#endif

}  // namespace
}  // namespace verbscope
