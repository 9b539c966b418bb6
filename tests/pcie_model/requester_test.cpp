// PCIe events of the posting side, each case counted by hand in its comment. Headers: 26 B on a request, 22 B on a
// completion; MPS 256, MRRS 512, RCB 128.
#include <gtest/gtest.h>

#include "tests/pcie_model/clusters.hpp"

namespace verbscope {
namespace {

using enum Verb;
using enum Transport;

// A case expects these events, in the order of PcieEvents.
struct Expected {
  double read_lines, write_full, write_partial, wc_lines, doorbells, tlps_to_nic, tlps_to_host, to_nic, to_host;
};

void expect_events(const PciePerOp& got, const Expected& want) {
  constexpr double kRounding = 1e-9;
  EXPECT_NEAR(got.dma_read_lines, want.read_lines, kRounding);
  EXPECT_NEAR(got.dma_write_full_lines, want.write_full, kRounding);
  EXPECT_NEAR(got.dma_write_partial_lines, want.write_partial, kRounding);
  EXPECT_NEAR(got.mmio_wc_lines, want.wc_lines, kRounding);
  EXPECT_NEAR(got.mmio_doorbells, want.doorbells, kRounding);
  EXPECT_NEAR(got.tlps_to_nic, want.tlps_to_nic, kRounding);
  EXPECT_NEAR(got.tlps_to_host, want.tlps_to_host, kRounding);
  EXPECT_NEAR(got.bytes_to_nic, want.to_nic, kRounding);
  EXPECT_NEAR(got.bytes_to_host, want.to_host, kRounding);
}

// 128 B of WQE: two lines of 64 + 26 by BlueFlame; a CQE of 64 + 26.
TEST(Requester, Mlx5UdInlineSinglePost) {
  const Prediction p = predict_requester(wide_mlx5(), inline_shape(send, ud, 60, 1));
  EXPECT_EQ(p.method, PostMethod::blueflame);
  EXPECT_EQ(p.wqe_bytes, Bytes(128));
  EXPECT_EQ(p.wqe_lines, 2);
  expect_events(p.pcie, {0, 1, 0, 2, 0, 2, 1, 180, 90});
  EXPECT_EQ(p.pcie.payload_bytes_to_nic, 128);
  EXPECT_EQ(p.pcie.payload_bytes_to_host, 64);
  // 128 B into the ring (16 stores), a doorbell record, 128 B of MMIO (16 stores).
  EXPECT_EQ(p.cpu.ring_bytes, 128);
  EXPECT_EQ(p.cpu.record_bytes, 4);
  EXPECT_EQ(p.cpu.mmio_bytes, 128);
  EXPECT_EQ(p.cpu.stores, 33);
}

// A list of 16 WQEs of 128 B: a doorbell of 8 + 26; 2048 B in 4 requests and 16 completions; one CQE per 16.
TEST(Requester, Mlx5UdInlineList) {
  VerbShape shape = inline_shape(send, ud, 60, 16);
  shape.signal_every = 16;
  const Prediction p = predict_requester(wide_mlx5(), shape);
  EXPECT_EQ(p.method, PostMethod::doorbell);
  expect_events(p.pcie, {2, 1.0 / 16, 0, 0, 1.0 / 16, 17.0 / 16, 5.0 / 16, 150 + 34.0 / 16, (4 * 26 + 90) / 16.0});
  EXPECT_DOUBLE_EQ(p.pcie.payload_bytes_to_nic, 128 + 8.0 / 16);
  EXPECT_EQ(p.cpu.ring_bytes, 128);
  EXPECT_EQ(p.cpu.record_bytes, 4.0 / 16);
  EXPECT_EQ(p.cpu.mmio_bytes, 8.0 / 16);
  EXPECT_EQ(p.cpu.stores, 16 + 2.0 / 16);
}

// One line by BlueFlame.
TEST(Requester, Mlx5UdHeaderOnlySinglePost) {
  const Prediction p = predict_requester(wide_mlx5(), header_only_shape(ud, 1));
  EXPECT_EQ(p.wqe_lines, 1);
  expect_events(p.pcie, {0, 1, 0, 1, 0, 1, 1, 90, 90});
}

// 1024 B in 2 requests and 8 completions per 16.
TEST(Requester, Mlx5UdHeaderOnlyList) {
  const Prediction p = predict_requester(wide_mlx5(), header_only_shape(ud, 16));
  expect_events(p.pcie, {1, 1, 0, 0, 1.0 / 16, 9.0 / 16, 1 + 2.0 / 16, 64 + (8 * 22 + 34) / 16.0, 90 + 52.0 / 16});
}

// Lists of 2 header-only WQEs (64 B each) on a ring of 128 blocks. Alone they begin at even blocks: one completion.
// With lists of odd lengths between them they begin anywhere: 64 even blocks, one completion; 63 odd ones, two; the
// last block, two reads of one completion each.
TEST(Requester, ListsAmongListsOfOtherLengthsBeginAnywhere) {
  VerbShape shape = header_only_shape(ud, 2);
  EXPECT_EQ(predict_requester(wide_mlx5(), shape).pcie.tlps_to_nic, (1 + 1) / 2.0);
  shape.post_step = 1;
  const Prediction p = predict_requester(wide_mlx5(), shape);
  const double completions = (64 + 63 * 2 + 2) / 128.0 / 2, requests = (64 + 63 + 2) / 128.0 / 2;
  expect_events(p.pcie,
                {1, 1, 0, 0, 0.5, 0.5 + completions, 1 + requests, 64 + completions * 22 + 17, 90 + requests * 26});
}

// Lists of two 2-line WQEs. With WQEs of one line between them: from an even block on two completions, from an odd one
// three. With WQEs of four lines between them all begin at even blocks.
TEST(Requester, ListsAmongWqesOfOtherSizesBeginWhereThoseEnd) {
  VerbShape shape = inline_shape(send, ud, 60, 2);
  EXPECT_EQ(predict_requester(wide_mlx5(), shape).pcie.tlps_to_nic, (1 + 2) / 2.0);
  shape.begin_blocks = 1;
  EXPECT_EQ(predict_requester(wide_mlx5(), shape).pcie.tlps_to_nic, (1 + 2.5) / 2);
  shape.begin_blocks = 2;
  EXPECT_EQ(predict_requester(wide_mlx5(), shape).pcie.tlps_to_nic, (1 + 2) / 2.0);
}

// The payload is [24, 1024): requests [24, 536) and [536, 1024), answered by completions that end at multiples of 128:
// 5 and 4. The WQE of 48 B is a line by BlueFlame.
TEST(Requester, PayloadAtOffsetAddsACompletion) {
  VerbShape shape = gather_shape(write, rc, 1000, 1);
  shape.payload_offset = Bytes(24);
  const Prediction p = predict_requester(wide_mlx5(), shape);
  expect_events(p.pcie, {16, 1, 0, 1, 0, 1 + 9, 2 + 1, 90 + 1000 + 9 * 22, 2 * 26 + 90});
}

// Queue depth 4 makes a ring of 4 blocks. Lists of 3 start at blocks 0, 3, 2, 1: 1, 2, 2, 1 requests, 2 completions
// each.
TEST(Requester, Mlx5OddListWrapsAroundTheRing) {
  VerbShape shape = header_only_shape(ud, 3);
  shape.send_queue_depth = 4;
  shape.signal_every = 4;
  const Prediction p = predict_requester(wide_mlx5(), shape);
  expect_events(p.pcie, {1, 0.25, 0, 0, 1.0 / 3, 1, 0.5 + 0.25, 64 + (2 * 22 + 34) / 3.0, 13 + 22.5});
}

// 16 B is one unit: no BlueFlame. A doorbell and a read of the 64-byte block.
TEST(Requester, Mlx5RcHeaderOnlyIsTooSmallForBlueflame) {
  const Prediction p = predict_requester(wide_mlx5(), header_only_shape(rc, 1));
  EXPECT_EQ(p.wqe_bytes, Bytes(16));
  EXPECT_EQ(p.method, PostMethod::doorbell);
  expect_events(p.pcie, {1, 1, 0, 0, 1, 2, 2, 34 + 86, 26 + 90});
}

// 80 B of WQE in two lines by BlueFlame, then 100 B of payload: one request, one completion, two lines.
TEST(Requester, Mlx5UdGatherSinglePost) {
  const Prediction p = predict_requester(wide_mlx5(), gather_shape(send, ud, 100, 1));
  EXPECT_EQ(p.method, PostMethod::blueflame);
  EXPECT_EQ(p.wqe_bytes, Bytes(80));
  expect_events(p.pcie, {2, 1, 0, 2, 0, 3, 2, 180 + 122, 26 + 90});
}

// 257 B is over the register: doorbell. 5 blocks on a ring of 1024 (128 * 5 rounded up): of 1024 starts the last 4
// wrap, which costs a second request but no completion more than the 3 that 320 B take from any block.
TEST(Requester, Mlx5BlueflameEndsAtHalfARegister) {
  EXPECT_EQ(predict_requester(wide_mlx5(), inline_shape(write, rc, 220, 1)).method, PostMethod::blueflame);
  EXPECT_EQ(predict_requester(wide_mlx5(), inline_shape(send, ud, 188, 1)).method, PostMethod::blueflame);
  EXPECT_EQ(predict_requester(wide_mlx5(), inline_shape(send, ud, 189, 1)).method, PostMethod::doorbell);
  EXPECT_EQ(predict_requester(wide_mlx5(), inline_shape(send, rc, 236, 1)).method, PostMethod::blueflame);
  EXPECT_EQ(predict_requester(wide_mlx5(), inline_shape(send, rc, 237, 1)).method, PostMethod::doorbell);
  const Prediction p = predict_requester(wide_mlx5(), inline_shape(write, rc, 221, 1));
  EXPECT_EQ(p.method, PostMethod::doorbell);
  const double wraps = 4.0 / 1024;
  expect_events(p.pcie, {5, 1, 0, 0, 1, 4, 2 + wraps, 34 + 320 + 66, 90 + 26 * (1 + wraps)});
}

// 48 B of WQE in one line; the 64 B response and the CQE are written: 90 each.
TEST(Requester, Mlx5Read) {
  const Prediction p = predict_requester(wide_mlx5(), gather_shape(read, rc, 64, 1));
  expect_events(p.pcie, {0, 2, 0, 1, 0, 1, 2, 90, 180});
}

// 10000 B come in packets of 4096, 4096 and 1808: 16 + 16 + 8 writes; 64 + 64 + 28 whole lines and 16 B.
TEST(Requester, Mlx5ReadOfSeveralPackets) {
  const Prediction p = predict_requester(wide_mlx5(), gather_shape(read, rc, 10000, 1));
  expect_events(p.pcie, {0, 157, 1, 1, 0, 1, 41, 90, 10000 + 40 * 26 + 90});
}

// 64 B of WQE; the old value, 8 B, is a write to a part of a line.
TEST(Requester, Mlx5Atomics) {
  for (const Verb verb : {compare_swap, fetch_add}) {
    const Prediction p = predict_requester(wide_mlx5(), gather_shape(verb, rc, 8, 1));
    EXPECT_EQ(p.wqe_bytes, Bytes(64));
    expect_events(p.pcie, {0, 1, 1, 1, 0, 1, 2, 90, 34 + 90});
  }
}

// A gather WRITE: 48 B in one line, payload 600 B: 2 requests, 5 completions, 10 lines.
TEST(Requester, Mlx5GatherWrite) {
  const Prediction p = predict_requester(wide_mlx5(), gather_shape(write, uc, 600, 1));
  expect_events(p.pcie, {10, 1, 0, 1, 0, 6, 3, 90 + 600 + 5 * 22, 2 * 26 + 90});
}

// mlx4 writes a CQE of 32 B, a part of a line, and no doorbell record.
TEST(Requester, Mlx4UdInlineSinglePost) {
  const Prediction p = predict_requester(narrow_mlx4(), inline_shape(send, ud, 60, 1));
  EXPECT_EQ(p.method, PostMethod::blueflame);
  expect_events(p.pcie, {0, 0, 1, 2, 0, 2, 1, 180, 58});
  EXPECT_EQ(p.cpu.record_bytes, 0);
  EXPECT_EQ(p.cpu.stores, 16 + 16);
}

// A 4-byte doorbell; otherwise like mlx5, since 60 B inline fill a slot of 128.
TEST(Requester, Mlx4UdInlineList) {
  const Prediction p = predict_requester(narrow_mlx4(), inline_shape(send, ud, 60, 16));
  expect_events(p.pcie, {2, 0, 1, 0, 1.0 / 16, 17.0 / 16, 1 + 4.0 / 16, 150 + 30.0 / 16, 58 + 104.0 / 16});
}

// A payload that is not inline goes by doorbell. The WQE is 64 B: 30 + 86 to the NIC.
TEST(Requester, Mlx4HeaderOnlySinglePost) {
  const Prediction p = predict_requester(narrow_mlx4(), header_only_shape(ud, 1));
  EXPECT_EQ(p.method, PostMethod::doorbell);
  expect_events(p.pcie, {1, 0, 1, 0, 1, 2, 2, 30 + 86, 26 + 58});
}

// WQE 80 B read as two lines (150), payload 100 B (122).
TEST(Requester, Mlx4UdGatherSinglePost) {
  const Prediction p = predict_requester(narrow_mlx4(), gather_shape(send, ud, 100, 1));
  EXPECT_EQ(p.method, PostMethod::doorbell);
  expect_events(p.pcie, {4, 0, 1, 0, 1, 3, 3, 30 + 150 + 122, 52 + 58});
}

TEST(Requester, Mlx4ReadCountsAsInlineAndAtomicsDoNot) {
  EXPECT_EQ(predict_requester(narrow_mlx4(), gather_shape(read, rc, 8, 1)).method, PostMethod::blueflame);
  EXPECT_EQ(predict_requester(narrow_mlx4(), gather_shape(fetch_add, rc, 8, 1)).method, PostMethod::doorbell);
  EXPECT_EQ(predict_requester(narrow_mlx4(), gather_shape(write, rc, 8, 1)).method, PostMethod::doorbell);
}

// 40 B inline on RC: a WQE of one line in slots of 128 (room for a WRITE). Of a list each WQE is a request and a
// completion.
TEST(Requester, Mlx4ListReadsEachWqeThatDoesNotFillItsSlot) {
  const Prediction p = predict_requester(narrow_mlx4(), inline_shape(send, rc, 40, 4));
  expect_events(p.pcie, {1, 0, 1, 0, 0.25, 1.25, 2, 64 + 22 + 30 / 4.0, 58 + 26});
}

// WQEs of 128 B fill slots of 128 and are one read a list; a capability of 120 B makes slots of 256.
TEST(Requester, AnInlineCapabilityWidensMlx4Slots) {
  VerbShape shape = inline_shape(send, ud, 60, 2);
  EXPECT_EQ(predict_requester(narrow_mlx4(), shape).pcie.tlps_to_host, 1.0 / 2 + 1);
  shape.max_inline_cap = Bytes(120);
  EXPECT_EQ(predict_requester(narrow_mlx4(), shape).pcie.tlps_to_host, 1 + 1);
  EXPECT_EQ(predict_requester(narrow_mlx4(), shape).pcie.dma_read_lines, 2);
  EXPECT_EQ(predict_requester(wide_mlx5(), shape).pcie.tlps_to_host, 1.0 / 2 + 1);
}

}  // namespace
}  // namespace verbscope
