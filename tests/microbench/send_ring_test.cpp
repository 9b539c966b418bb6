// The prebuilt work requests, counted by hand.
#include "microbench/loop/send_ring.hpp"

#include <gtest/gtest.h>

#include "microbench/loop/completions.hpp"
#include "microbench/loop/payload.hpp"

namespace verbscope {
namespace {

ibv_ah* fake_ah(std::uintptr_t n) {
  return reinterpret_cast<ibv_ah*>(n * 64);
}

TEST(RingShape, HoldsWholeListsAndEndsOnASignal) {
  EXPECT_EQ(ring_shape({.post_list = 16, .signal_every = 64}, 1).length, 64u);
  EXPECT_EQ(ring_shape({.post_list = 3, .signal_every = 4}, 1).length, 12u);
  EXPECT_EQ(ring_shape({.post_list = 16, .signal_every = 64}, 3).length, 192u);
  EXPECT_EQ(ring_shape({.post_list = 4, .signal_every = 2}, 2).length, 4u);
}

TEST(RingShape, StaysShortWithManyPartners) {
  EXPECT_EQ(ring_shape({.post_list = 31, .signal_every = 32}, 61).length, 31u * 32u);
}

TEST(SendRing, ChainsListsAndSignalsEveryFew) {
  const Operation op{.transport = Transport::rc, .payload = 32, .inlined = true, .post_list = 3, .signal_every = 2};
  const RingShape shape = ring_shape(op, 1);
  ASSERT_EQ(shape.length, 6u);
  const SendRing ring(op, shape, {.address = 4096, .stride = 128, .slots = 4, .lkey = 9}, {}, 7);
  for (std::uint32_t j = 0; j < 6; ++j) {
    const ibv_send_wr& wr = ring.list()[j];
    EXPECT_EQ(wr.wr_id, send_id(7));
    EXPECT_EQ(wr.next, j == 2 || j == 5 ? nullptr : &ring.list()[j + 1]);
    EXPECT_EQ(wr.send_flags, unsigned{IBV_SEND_INLINE} | (j % 2 == 1 ? unsigned{IBV_SEND_SIGNALED} : 0u));
    EXPECT_EQ(wr.opcode, IBV_WR_SEND);
    ASSERT_EQ(wr.num_sge, 1);
    EXPECT_EQ(wr.sg_list->addr, 4096u + 128 * (j % 4));
    EXPECT_EQ(wr.sg_list->length, 32u);
    EXPECT_EQ(wr.sg_list->lkey, 9u);
  }
}

TEST(SendRing, SendsDatagramsToEachPartnerInTurn) {
  const Operation op{.transport = Transport::ud, .payload = 8, .post_list = 2, .signal_every = 2};
  const RingShape shape = ring_shape(op, 3);
  ASSERT_EQ(shape.length, 6u);
  const SendRing ring(op, shape, {}, {{fake_ah(1), 11, 5}, {fake_ah(2), 12, 5}, {fake_ah(3), 13, 5}}, 0);
  for (std::uint32_t j = 0; j < 6; ++j) {
    EXPECT_EQ(ring.list()[j].wr.ud.ah, fake_ah(j % 3 + 1));
    EXPECT_EQ(ring.list()[j].wr.ud.remote_qpn, 11 + j % 3);
    EXPECT_EQ(ring.list()[j].wr.ud.remote_qkey, 5u);
  }
}

TEST(SendRing, HeaderOnlyCarriesTheSlotInTheImmediate) {
  const Operation op{.transport = Transport::ud, .header_only = true, .post_list = 4, .signal_every = 4};
  const SendRing ring(op, ring_shape(op, 1), {.slots = 16}, {{fake_ah(1), 11, 5}}, 0);
  EXPECT_EQ(ring.list()[3].opcode, IBV_WR_SEND_WITH_IMM);
  EXPECT_EQ(ring.list()[3].imm_data, immediate_of(3));
  EXPECT_EQ(ring.list()[3].num_sge, 0);
}

TEST(SendRing, WritesAndReadsAddressThePeersRegion) {
  for (const auto& [verb, opcode] :
       {std::pair{Verb::write, IBV_WR_RDMA_WRITE}, std::pair{Verb::read, IBV_WR_RDMA_READ}}) {
    const Operation op{.verb = verb, .payload = 32, .post_list = 2, .signal_every = 2};
    const SendRing ring(op, ring_shape(op, 1), {.address = 4096, .stride = 128, .slots = 2, .lkey = 9}, {}, 0,
                        {.address = 1 << 16, .bytes = 1 << 12, .rkey = 77});
    for (const ibv_send_wr& wr : ring.list()) {
      EXPECT_EQ(wr.opcode, opcode);
      EXPECT_EQ(wr.wr.rdma.remote_addr, 1u << 16);
      EXPECT_EQ(wr.wr.rdma.rkey, 77u);
      EXPECT_EQ(wr.sg_list->length, 32u);
    }
  }
}

TEST(RingShape, IsLongWithChangingAddresses) {
  EXPECT_EQ(ring_shape({.verb = Verb::write}, 1).length, 32u);
  EXPECT_EQ(ring_shape({.verb = Verb::read, .post_list = 3, .signal_every = 4}, 1).length, 36u);
  EXPECT_EQ(ring_shape({.verb = Verb::write, .post_list = 16, .signal_every = 64}, 1).length, 64u);
}

TEST(RingShape, ValidatedReadsHaveSeparateBuffers) {
  // 100 may be outstanding: the next multiple of a ring of 32.
  const Operation op{.verb = Verb::read, .post_list = 16, .signal_every = 8, .tx_depth = 100, .validate = true};
  EXPECT_EQ(ring_shape(op, 1).length, 128u);
}

TEST(PostedTo, CountsEachPartnersShare) {
  // A ring of 7 over 3 partners: positions 0..6 go to 0 1 2 0 1 2 0.
  EXPECT_EQ(posted_to(7, 7, 3, 0), 3u);
  EXPECT_EQ(posted_to(7, 7, 3, 1), 2u);
  EXPECT_EQ(posted_to(9, 7, 3, 0), 4u);
  EXPECT_EQ(posted_to(9, 7, 3, 1), 3u);
  EXPECT_EQ(posted_to(9, 7, 3, 2), 2u);
  EXPECT_EQ(posted_to(0, 7, 3, 0), 0u);
}

}  // namespace
}  // namespace verbscope
