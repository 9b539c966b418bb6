// Counts of ibv_post_send and ibv_post_recv; their results are those of the device.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "tests/drivers_patch/traced_rig.hpp"
#include "tests/verbs/count_allocations.hpp"

namespace verbscope::driver {
namespace {

int post(ibv_qp* qp, ibv_send_wr& wr) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &wr, &bad);
}

TEST(DriverPosting, CountsRequestsByOpcodeSizeAndFlags) {
  TracedRig rig({.transport = Transport::rc, .send_sge = 4, .max_inline = 64});
  Send write(IBV_WR_RDMA_WRITE, 100, IBV_SEND_SIGNALED), read(IBV_WR_RDMA_READ, 0, IBV_SEND_SIGNALED | IBV_SEND_FENCE),
      send(IBV_WR_SEND_WITH_IMM, 20, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
  for (Send* each : {&write, &write, &write, &read, &send}) EXPECT_EQ(post(rig.qp.get(), each->wr), 0);
  const Sums sums = rig.counted();
  EXPECT_EQ(sums.requests(), 5u);
  EXPECT_EQ(sums.sends.by_opcode[IBV_WR_RDMA_WRITE], 3u);
  EXPECT_EQ(sums.sends.by_opcode[IBV_WR_RDMA_READ], 1u);
  EXPECT_EQ(sums.sends.by_opcode[IBV_WR_SEND_WITH_IMM], 1u);
  EXPECT_EQ(sums.sends.by_size[7], 3u);  // 64 to 127
  EXPECT_EQ(sums.sends.by_size[5], 1u);  // 16 to 31
  EXPECT_EQ(sums.sends.by_size[0], 1u);
  EXPECT_EQ(sums.sends.signaled, 5u);
  EXPECT_EQ(sums.sends.fenced, 1u);
  EXPECT_EQ(sums.sends.inlined, 1u);
  EXPECT_EQ(sums.sends.inline_bytes, 20u);
  EXPECT_EQ(sums.sends.payload_bytes, 320u);
  EXPECT_EQ(sums.posts(), 5u);
  EXPECT_EQ(sums.lists, 0u);
  // All have more than one unit and were posted alone: 48, 48, 48, 48 and 40 bytes.
  EXPECT_EQ(sums.sends.blueflames, 5u);
  EXPECT_EQ(sums.sends.wqe_blocks, 5u);
  EXPECT_EQ(sums.doorbells(), 0u);
}

TEST(DriverPosting, ListsRingOneDoorbell) {
  TracedRig rig({.transport = Transport::rc});
  Send first(IBV_WR_RDMA_WRITE, 64), second(IBV_WR_RDMA_WRITE, 64), third(IBV_WR_RDMA_READ, 8, IBV_SEND_SIGNALED);
  first.wr.next = &second.wr;
  second.wr.next = &third.wr;
  EXPECT_EQ(post(rig.qp.get(), first.wr), 0);
  const Sums sums = rig.counted();
  EXPECT_EQ(sums.requests(), 3u);
  EXPECT_EQ(sums.lists, 1u);
  EXPECT_EQ(sums.by_list[2], 1u);
  EXPECT_EQ(sums.doorbells(), 1u);
  EXPECT_EQ(sums.sends.blueflames, 0u);
  EXPECT_EQ(sums.pcie.exact.mmio_doorbells, 1u);
  EXPECT_EQ(sums.pcie.exact.mmio_wc_lines, 0u);
}

TEST(DriverPosting, IgnoresRefusedRequests) {
  TracedRig rig({.transport = Transport::rc});
  std::array<Send, kDepth + 2> list;
  for (std::size_t i = 0; i + 1 < list.size(); ++i) list[i].wr.next = &list[i + 1].wr;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(rig.qp.get(), &list[0].wr, &bad), ENOMEM);
  ASSERT_EQ(bad, &list[kDepth].wr);
  EXPECT_EQ(rig.counted().requests(), std::uint64_t{kDepth});
  EXPECT_EQ(rig.counted().by_list[4], 1u);
  Send alone;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(post(rig.qp.get(), alone.wr), ENOMEM);
  EXPECT_EQ(rig.counted().requests(), std::uint64_t{kDepth});
  EXPECT_EQ(rig.counted().failed_posts, 4u);
}

TEST(DriverPosting, CountsAListWithOneAcceptedRequestAsPostedAlone) {
  TracedRig rig({.transport = Transport::rc});
  std::array<Send, kDepth - 1> fill;
  for (Send& each : fill) EXPECT_EQ(post(rig.qp.get(), each.wr), 0);
  Send first, second;
  first.wr.next = &second.wr;
  EXPECT_EQ(post(rig.qp.get(), first.wr), ENOMEM);
  EXPECT_EQ(rig.counted().requests(), std::uint64_t{kDepth});
  EXPECT_EQ(rig.counted().sends.alone, std::uint64_t{kDepth});
  EXPECT_EQ(rig.counted().lists, 0u);
}

TEST(DriverPosting, KeepsErrno) {
  TracedRig rig({.transport = Transport::rc});
  Send send;
  errno = EXDEV;
  EXPECT_EQ(post(rig.qp.get(), send.wr), 0);  // the first makes the counts
  EXPECT_EQ(post(rig.qp.get(), send.wr), 0);
  rig.poll();
  EXPECT_EQ(errno, EXDEV);
}

TEST(DriverPosting, SumsAreCorrectForManyShapes) {
  TracedRig rig({.transport = Transport::rc});
  std::uint64_t bytes = 0, lines = 0;
  for (std::uint32_t i = 0; i < 500; ++i) {
    Send write(IBV_WR_RDMA_WRITE, 1 + i * 3, IBV_SEND_SIGNALED);
    write.sge.addr = i * 7;
    EXPECT_EQ(post(rig.qp.get(), write.wr), 0);
    rig.poll();
    bytes += write.sge.length;
    // Packets of 1024 bytes each begin where the payload does in a line.
    for (std::uint64_t at = i * 7, left = write.sge.length; left > 0;) {
      const std::uint64_t part = std::min<std::uint64_t>(left, 1024);
      lines += (at + part - 1) / 64 - at / 64 + 1;
      at += part;
      left -= part;
    }
  }
  const Sums sums = rig.counted();
  EXPECT_EQ(sums.requests(), 500u);
  EXPECT_EQ(sums.sends.payload_bytes, bytes);
  EXPECT_EQ(sums.pcie.exact.dma_read_lines, lines);
  EXPECT_EQ(sums.pcie.exact.payload_bytes_to_nic, bytes + 500 * 64);  // and a line of BlueFlame each
}

TEST(DriverPosting, ReadsGatheredPayloadsElementByElement) {
  TracedRig rig({.transport = Transport::rc, .send_sge = 4});
  std::array<ibv_sge, 3> three{{{.addr = 60, .length = 8, .lkey = 0}, {.addr = 128, .length = 64, .lkey = 0}, {}}};
  Send write(IBV_WR_RDMA_WRITE);
  write.wr.sg_list = three.data();
  write.wr.num_sge = 3;
  EXPECT_EQ(post(rig.qp.get(), write.wr), 0);
  const Sums sums = rig.counted();
  EXPECT_EQ(sums.sends.payload_bytes, 72u);
  EXPECT_EQ(sums.sends.elements, 3u);
  EXPECT_EQ(sums.sends.wqe_bytes, 64u);           // 32 and two data segments: the empty one is left out
  EXPECT_EQ(sums.pcie.exact.dma_read_lines, 3u);  // 60..67 lies in two lines
  EXPECT_EQ(sums.pcie.exact.mmio_wc_lines, 1u);
}

TEST(DriverPosting, CountsRecvsByLists) {
  TracedRig rig;
  std::array<ibv_recv_wr, 3> recvs{};
  std::array<ibv_sge, 3> sges{};
  for (std::size_t i = 0; i < 3; ++i) {
    recvs[i].sg_list = &sges[i];
    recvs[i].num_sge = 1;
    recvs[i].next = i < 2 ? &recvs[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(rig.qp.get(), recvs.data(), &bad), 0);
  EXPECT_EQ(ibv_post_recv(rig.qp.get(), &recvs[2], &bad), 0);
  const Sums sums = rig.counted();
  EXPECT_EQ(sums.recvs.recvs, 4u);
  EXPECT_EQ(sums.recvs.posts, 2u);
  EXPECT_EQ(sums.recvs.by_list[1], 1u);
  EXPECT_EQ(sums.recvs.by_list[2], 1u);
}

TEST(DriverPosting, PassesEmptyPostsToTheDevice) {
  TracedRig rig;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(rig.qp.get(), nullptr, &bad), 0);
  EXPECT_EQ(rig.counted().requests(), 0u);
}

#ifdef VERBSCOPE_COUNT_ALLOCATIONS
TEST(DriverPosting, AllocatesNothing) {
  TracedRig rig({.transport = Transport::rc});
  const std::size_t before = allocations_of_this_thread();
  ibv_wc completion{};
  for (std::uint32_t i = 0; i < 100; ++i) {
    Send write(IBV_WR_RDMA_WRITE, i, IBV_SEND_SIGNALED);
    EXPECT_EQ(post(rig.qp.get(), write.wr), 0);
    EXPECT_EQ(ibv_poll_cq(rig.cq.get(), 1, &completion), 1);
  }
  EXPECT_EQ(allocations_of_this_thread(), before);
}
#endif

}  // namespace
}  // namespace verbscope::driver
