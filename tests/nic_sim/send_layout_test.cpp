// WQE sizes of the two NIC families, compared with the formulas of rdma-core 44 (providers/mlx5/qp.c,
// providers/mlx4/qp.c). mlx5: SEND inline is 20 + x bytes on RC and UC, 68 + x on UD; WRITE inline 36 + x. mlx4: every
// chunk of inline data ends at a 64-byte boundary and has its own 4-byte header, so each further block holds 60 bytes.
#include "nic_sim/nic/send_layout.hpp"

#include <gtest/gtest.h>

namespace verbscope::sim {
namespace {

std::string name_of(NicFamily family) {
  return family == NicFamily::mlx4 ? "mlx4" : "mlx5";
}

struct Case {
  NicFamily family;
  Verb verb;
  Transport transport;
  std::uint64_t largest_in_first;  // largest inline payload in the smallest number of blocks
  std::uint64_t first_blocks;
  std::uint64_t per_block;  // additional payload per further block
  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << name_of(c.family) << (c.verb == Verb::write ? "_write_" : "_send_")
               << (c.transport == Transport::rc   ? "RC"
                   : c.transport == Transport::uc ? "UC"
                                                  : "UD");
  }
};

class InlineSteps : public testing::TestWithParam<Case> {};

TEST_P(InlineSteps, AWqeGrowsByABlockRightAfterItsLargestPayload) {
  const Case& c = GetParam();
  const auto blocks = [&](std::uint64_t payload) {
    return begin_layout(c.family, c.verb, c.transport).add_inline(payload).blocks_size();
  };
  for (std::uint64_t more = 0; more < 4; ++more) {
    const std::uint64_t largest = c.largest_in_first + more * c.per_block;
    EXPECT_EQ(blocks(largest), (c.first_blocks + more) * 64) << largest << " bytes";
    EXPECT_EQ(blocks(largest + 1), (c.first_blocks + more + 1) * 64) << largest + 1 << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(
    , InlineSteps,
    testing::Values(Case{NicFamily::mlx5, Verb::write, Transport::rc, 28, 1, 64},  // 28, 92, 156, 220
                    Case{NicFamily::mlx5, Verb::write, Transport::uc, 28, 1, 64},  //
                    Case{NicFamily::mlx5, Verb::send, Transport::rc, 44, 1, 64},   // 44, 108, ...
                    Case{NicFamily::mlx5, Verb::send, Transport::uc, 44, 1, 64},   //
                    Case{NicFamily::mlx5, Verb::send, Transport::ud, 60, 2, 64},   // 60, 124, 188
                    Case{NicFamily::mlx4, Verb::write, Transport::rc, 28, 1, 60},  // 28 + 60 (n - 1)
                    Case{NicFamily::mlx4, Verb::send, Transport::rc, 44, 1, 60},   // 44 + 60 (n - 1)
                    Case{NicFamily::mlx4, Verb::send, Transport::uc, 44, 1, 60},   //
                    Case{NicFamily::mlx4, Verb::send, Transport::ud, 60, 2, 60}),  // 60 (n - 1)
    testing::PrintToStringParamName());

class BothFamilies : public testing::TestWithParam<NicFamily> {};

TEST_P(BothFamilies, AHeaderOnlySendHasNoDataSegment) {
  EXPECT_EQ(begin_layout(GetParam(), Verb::send, Transport::ud).add_inline(0).size(), 64u);  // 16 + 48
  EXPECT_EQ(begin_layout(GetParam(), Verb::send, Transport::rc).add_inline(0).size(), 16u);
}

TEST_P(BothFamilies, ASendThatIsNotInlineHasASegmentPerSge) {
  const SendLayout ud = begin_layout(GetParam(), Verb::send, Transport::ud).add_sges(1);
  EXPECT_EQ(ud.size(), 80u);  // 16 + 48 + 16
  EXPECT_EQ(ud.blocks_size(), 128u);
  EXPECT_EQ(begin_layout(GetParam(), Verb::send, Transport::rc).add_sges(1).size(), 32u);
  EXPECT_EQ(begin_layout(GetParam(), Verb::send, Transport::rc).add_sges(3).blocks_size(), 64u);   // 16 + 48
  EXPECT_EQ(begin_layout(GetParam(), Verb::send, Transport::rc).add_sges(4).blocks_size(), 128u);  // 16 + 64
}

TEST_P(BothFamilies, ReadsAndAtomicsTakeOneBlock) {
  EXPECT_EQ(begin_layout(GetParam(), Verb::read, Transport::rc).add_sges(1).size(), 48u);
  EXPECT_EQ(begin_layout(GetParam(), Verb::compare_swap, Transport::rc).add_sges(1).size(), 64u);
  EXPECT_EQ(begin_layout(GetParam(), Verb::fetch_add, Transport::rc).add_sges(1).size(), 64u);
}

INSTANTIATE_TEST_SUITE_P(, BothFamilies, testing::Values(NicFamily::mlx4, NicFamily::mlx5),
                         [](const auto& family) { return name_of(family.param); });

TEST(SendLayout, SizesCountUnitsOfSixteenBytes) {
  EXPECT_EQ(begin_layout(NicFamily::mlx5, Verb::send, Transport::rc).add_inline(12).size(), 32u);  // 16 + 4 + 12
  EXPECT_EQ(begin_layout(NicFamily::mlx5, Verb::send, Transport::rc).add_inline(13).size(), 48u);
  // mlx4, 61 bytes after 64: 4 + 60 to the boundary, then 4 + 1.
  EXPECT_EQ(begin_layout(NicFamily::mlx4, Verb::send, Transport::ud).add_inline(61).size(), 144u);
}

// The number of the shared queue: mlx5 has a segment for it, mlx4 has it in the control segment.
TEST(SendLayout, NamesTheQueueOnXrc) {
  EXPECT_EQ(begin_layout(NicFamily::mlx5, Verb::send, Transport::xrc).size(), 32u);   // 16 + 16
  EXPECT_EQ(begin_layout(NicFamily::mlx5, Verb::write, Transport::xrc).size(), 48u);  // and 16
  EXPECT_EQ(begin_layout(NicFamily::mlx4, Verb::send, Transport::xrc).size(), 16u);
}

TEST(SendSlot, Mlx5PacksWqesInBlocks) {
  const SlotSize slot = send_slot(NicFamily::mlx5, Transport::ud, 188, 1);
  EXPECT_EQ(slot.slot, 0u);
  EXPECT_EQ(slot.largest, 256u);  // 68 + 188
}

TEST(SendSlot, Mlx4HasOnePowerOfTwoForTheLargestWqe) {
  EXPECT_EQ(send_slot(NicFamily::mlx4, Transport::ud, 60, 1).slot, 128u);  // 64 + 4 + 60
  EXPECT_EQ(send_slot(NicFamily::mlx4, Transport::ud, 61, 1).slot, 256u);  // 133 bytes: 3 blocks, to a power of two
  EXPECT_EQ(send_slot(NicFamily::mlx4, Transport::ud, 0, 1).slot, 128u);   // 80
  EXPECT_EQ(send_slot(NicFamily::mlx4, Transport::rc, 28, 1).slot, 64u);   // WRITE: 32 + 4 + 28
  EXPECT_EQ(send_slot(NicFamily::mlx4, Transport::rc, 29, 1).slot, 128u);  // one more byte: a second block
  EXPECT_EQ(send_slot(NicFamily::mlx4, Transport::uc, 0, 2).slot, 64u);    // 32 + 2 * 16
  EXPECT_EQ(send_slot(NicFamily::mlx4, Transport::uc, 0, 3).slot, 128u);   // 80
}

}  // namespace
}  // namespace verbscope::sim
