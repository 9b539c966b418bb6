// The ibv_wr_* interface: requests are counted when they are posted, like those of ibv_post_send.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "tests/drivers_patch/traced_rig.hpp"

namespace verbscope::driver {
namespace {

struct Rig : TracedRig {
  Rig() : TracedRig({.transport = Transport::rc, .send_sge = 4, .max_inline = 64, .builder = true}) {}
  ibv_qp_ex* wr = qp.builder();
};

// All counts except times.
bool equal(Sums a, Sums b) {
  for (Sums* each : {&a, &b}) {
    each->samples = 0;
    std::fill(std::begin(each->by_time), std::end(each->by_time), 0);
  }
  return std::memcmp(&a, &b, sizeof a) == 0;
}

TEST(DriverBuilding, CountsEachCallByItsOpcode) {
  Rig rig;
  ibv_wr_start(rig.wr);
  rig.wr->wr_flags = 0;
  ibv_wr_send(rig.wr);
  ibv_wr_send_imm(rig.wr, 1);
  ibv_wr_rdma_write(rig.wr, 1, 2);
  ibv_wr_rdma_write_imm(rig.wr, 1, 2, 3);
  ibv_wr_rdma_read(rig.wr, 1, 2);
  ibv_wr_atomic_cmp_swp(rig.wr, 1, 2, 3, 4);
  rig.wr->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  ibv_wr_atomic_fetch_add(rig.wr, 1, 2, 3);
  EXPECT_EQ(ibv_wr_complete(rig.wr), 0);
  const Sums sums = rig.counted();
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
                                     IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    EXPECT_EQ(sums.sends.by_opcode[opcode], 1u) << opcode;
  }
  EXPECT_EQ(sums.requests(), 7u);
  EXPECT_EQ(sums.by_list[3], 1u);
  EXPECT_EQ(sums.sends.signaled, 1u);
  EXPECT_EQ(sums.sends.fenced, 1u);
}

TEST(DriverBuilding, CountsLikeIbvPostSend) {
  std::array<ibv_sge, 2> two{{{.addr = 60, .length = 8, .lkey = 0}, {.addr = 128, .length = 64, .lkey = 0}}};
  Rig built, posted;
  const auto build = [&](auto&& begin) {
    ibv_wr_start(built.wr);
    built.wr->wr_flags = IBV_SEND_SIGNALED;
    begin();
    EXPECT_EQ(ibv_wr_complete(built.wr), 0);
    built.poll();
  };
  const auto post = [&](ibv_send_wr& wr) {
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(posted.qp.get(), &wr, &bad), 0);
    posted.poll();
  };
  build([&] { ibv_wr_rdma_write(built.wr, 0, 0), ibv_wr_set_sge(built.wr, 0, 70, 100); });
  Send write(IBV_WR_RDMA_WRITE, 100, IBV_SEND_SIGNALED);
  write.sge.addr = 70;
  post(write.wr);
  build([&] { ibv_wr_send(built.wr), ibv_wr_set_inline_data(built.wr, two.data(), 24); });
  Send inlined(IBV_WR_SEND, 24, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  inlined.sge.addr = 128;  // the address of inline data does not matter
  post(inlined.wr);
  build([&] { ibv_wr_rdma_write(built.wr, 0, 0), ibv_wr_set_sge_list(built.wr, 2, two.data()); });
  Send gathered(IBV_WR_RDMA_WRITE, 0, IBV_SEND_SIGNALED);
  gathered.wr.sg_list = two.data();
  gathered.wr.num_sge = 2;
  post(gathered.wr);
  EXPECT_TRUE(equal(built.counted(), posted.counted()));
  EXPECT_EQ(built.counted().sends.blueflames, 3u);
}

TEST(DriverBuilding, IgnoresAbortedAndRefusedBatches) {
  Rig rig;
  ibv_wr_start(rig.wr);
  ibv_wr_send(rig.wr);
  ibv_wr_abort(rig.wr);
  ibv_wr_start(rig.wr);
  for (int i = 0; i <= kDepth; ++i) ibv_wr_send(rig.wr);
  EXPECT_EQ(ibv_wr_complete(rig.wr), ENOMEM);
  EXPECT_EQ(rig.counted().requests(), 0u);
  EXPECT_EQ(rig.counted().failed_posts, 1u);
  ibv_wr_start(rig.wr);
  ibv_wr_send(rig.wr);
  EXPECT_EQ(ibv_wr_complete(rig.wr), 0);
  EXPECT_EQ(rig.counted().requests(), 1u);
}

TEST(DriverBuilding, LeavesMissingCallsMissing) {
  TracedRig rig({.transport = Transport::uc, .builder = true});
  EXPECT_EQ(rig.qp.builder()->wr_rdma_read, nullptr);
  EXPECT_EQ(rig.qp.builder()->wr_bind_mw, nullptr);
  EXPECT_NE(rig.qp.builder()->wr_send, nullptr);
}

// Number of switches of a thread from another QP, by either interface.
TEST(DriverBuilding, CountsSwitchesBetweenQps) {
  Rig first, second;
  const auto turns = [](const Rig& rig) {
    const Summary summary = summarize_process();
    for (const QueueUse& use : summary.uses) {
      if (summary.qps[use.qp].context == rig.number) return use.turns;
    }
    return std::uint64_t{0};
  };
  const auto build = [](Rig& rig) {
    ibv_wr_start(rig.wr);
    ibv_wr_send(rig.wr);
    EXPECT_EQ(ibv_wr_complete(rig.wr), 0);
  };
  for (Rig* each : {&first, &second}) build(*each);
  const std::uint64_t of_first = turns(first), of_second = turns(second);
  for (Rig* each : {&second, &first, &first, &second, &first}) build(*each);
  EXPECT_EQ(turns(first) - of_first, 2u);
  EXPECT_EQ(turns(second) - of_second, 1u);
  Send send;
  ibv_send_wr* bad = nullptr;
  for (Rig* each : {&first, &first, &second, &first}) {
    EXPECT_EQ(ibv_post_send(each->qp.get(), &send.wr, &bad), 0);
  }
  EXPECT_EQ(turns(first) - of_first, 4u);
  EXPECT_EQ(turns(second) - of_second, 2u);
}

}  // namespace
}  // namespace verbscope::driver
