// PCIe events of the machine whose memory WRITE, READ and atomics work on, and of inline receive and shared receive
// queues, counted by hand.
#include <gtest/gtest.h>

#include "pcie_model/costs.hpp"
#include "tests/pcie_model/clusters.hpp"

namespace verbscope {
namespace {

using enum Verb;
using enum Transport;

// One request (26) for 64 B, one completion (64 + 22). The response of 94 B leaves by two ports of 6817.5 MB/s.
TEST(Responder, SmallReadIsOnePayloadRead) {
  const Prediction p = predict_responder(wide_mlx5(), gather_shape(read, rc, 64, 1));
  EXPECT_EQ(p.role, "responder");
  EXPECT_EQ(p.method, PostMethod::none);
  EXPECT_EQ(p.wqe_bytes, Bytes(0));
  EXPECT_EQ(p.pcie.dma_read_lines, 1);
  EXPECT_EQ(p.pcie.dma_write_full_lines + p.pcie.dma_write_partial_lines, 0);
  EXPECT_EQ(p.pcie.mmio_wc_lines + p.pcie.mmio_doorbells, 0);
  EXPECT_EQ(p.pcie.bytes_to_nic, 86);
  EXPECT_EQ(p.pcie.bytes_to_host, 26);
  EXPECT_NEAR(bound(p, "wire_out"), 2 * 6817.5 / 94, 1e-9);
  EXPECT_NEAR(bound(p, "wire_in"), 2 * 6817.5 / 42, 1e-9);
  EXPECT_EQ(p.binding, "wire_out");
}

// 10000 B in packets of 4096, 4096 and 1808: 8 + 8 + 4 requests; completions end at multiples of 128: 32 + 32 + 15.
TEST(Responder, LongReadIsReadPacketByPacket) {
  const Prediction p = predict_responder(wide_mlx5(), gather_shape(read, rc, 10000, 1));
  EXPECT_EQ(p.pcie.tlps_to_host, 20);
  EXPECT_EQ(p.pcie.tlps_to_nic, 79);
  EXPECT_EQ(p.pcie.dma_read_lines, 64 + 64 + 29);
  EXPECT_EQ(p.pcie.bytes_to_nic, 10000 + 79 * 22);
}

// With an MTU below MRRS each packet of 256 B is a request of its own.
TEST(Responder, PacketsBelowTheReadRequestSizeAreReadOneByOne) {
  ClusterWire cluster = wide_mlx5();
  cluster.mtu = Bytes(256);
  EXPECT_EQ(predict_responder(cluster, gather_shape(read, rc, 1024, 1)).pcie.tlps_to_host, 4);
}

// 5000 B that begin 120 B behind a multiple of RCB, in packets of 4096 and 904 B, each of which ends and begins there:
// 8 B, 63 lines and 56 B; 8 B and 14 lines. Read: 512-byte requests over 4 borders of 128 and to the next, so 5
// completions each of 8; the last packet 5 and [632, 1024) 4.
TEST(Responder, PayloadOffsetAffectsWritesAndReads) {
  VerbShape shape = gather_shape(write, rc, 5000, 1);
  shape.payload_offset = Bytes(120);
  const PciePerOp written = predict_responder(wide_mlx5(), shape).pcie;
  EXPECT_EQ(written.dma_write_full_lines, 63 + 14);
  EXPECT_EQ(written.dma_write_partial_lines, 2 + 1);
  EXPECT_EQ(written.tlps_to_host, 16 + 4);
  shape.verb = read;
  const PciePerOp fetched = predict_responder(wide_mlx5(), shape).pcie;
  EXPECT_EQ(fetched.tlps_to_nic, 8 * 5 + 5 + 4);
  EXPECT_EQ(fetched.dma_read_lines, 65 + 15);
}

// 600 B arrive in one packet: MPS 256 makes 3 requests; 9 whole lines and 24 B. No CPU, no CQE.
TEST(Responder, WriteIsOnePayloadWrite) {
  for (const VerbShape& shape : {gather_shape(write, uc, 600, 1), inline_shape(write, rc, 512, 4)}) {
    const auto payload = static_cast<double>(shape.payload.value);
    const Prediction p = predict_responder(wide_mlx5(), shape);
    EXPECT_EQ(p.pcie.bytes_to_host, payload + 26 * (payload == 600 ? 3 : 2));
    EXPECT_EQ(p.pcie.dma_write_full_lines, payload == 600 ? 9 : 8);
    EXPECT_EQ(p.pcie.dma_write_partial_lines, payload == 600 ? 1 : 0);
    EXPECT_EQ(p.pcie.bytes_to_nic, 0);
    EXPECT_EQ(p.cpu.stores, 0);
    EXPECT_EQ(bound(p, "wire_out"), 0);
  }
}

// A packet of 26 + 16 and nothing on PCIe: the wire is the only bound.
TEST(Responder, EmptyWriteTouchesNoMemory) {
  const Prediction p = predict_responder(wide_mlx5(), gather_shape(write, rc, 0, 1));
  EXPECT_EQ(p.pcie.bytes_to_host + p.pcie.bytes_to_nic, 0);
  EXPECT_EQ(p.binding, "wire_in");
  EXPECT_NEAR(p.bound_mops, 2 * 6817.5 / 42, 1e-9);
}

// A line read (26 out, 8 + 22 in) and a part of a line written (8 + 26).
TEST(Responder, AtomicIsAReadAndAWriteOfEightBytes) {
  for (const Verb verb : {fetch_add, compare_swap}) {
    const Prediction p = predict_responder(wide_mlx5(), gather_shape(verb, rc, 8, 1));
    EXPECT_EQ(p.pcie.dma_read_lines, 1);
    EXPECT_EQ(p.pcie.dma_write_full_lines, 0);
    EXPECT_EQ(p.pcie.dma_write_partial_lines, 1);
    EXPECT_EQ(p.pcie.bytes_to_nic, 30);
    EXPECT_EQ(p.pcie.bytes_to_host, 26 + 34);
    EXPECT_NEAR(bound(p, "wire_in"), 2 * 6817.5 / 54, 1e-9);
    EXPECT_NEAR(bound(p, "wire_out"), 2 * 6817.5 / 38, 1e-9);
  }
}

// The immediate uses a RECV (a sixteenth of 26 out and 256 + 44 in) and makes a CQE (90); the payload goes where the
// WRITE says (32 + 26).
TEST(Responder, WriteWithImmediateUsesARecvAsWell) {
  VerbShape shape = inline_shape(write, rc, 32, 1);
  shape.immediate = true;
  const Prediction p = predict_responder(wide_mlx5(), shape);
  EXPECT_EQ(p.method, PostMethod::doorbell_record);
  EXPECT_EQ(p.pcie.bytes_to_host, 58 + 90 + 26.0 / 16);
  EXPECT_EQ(p.pcie.bytes_to_nic, 300.0 / 16);
  EXPECT_EQ(p.cpu.stores, 2 + 1);
  EXPECT_NEAR(bound(p, "wire_in"), 2 * 6817.5 / (26 + 16 + 4 + 32), 1e-9);
}

// The events are the same whatever side tells them: a SEND's receiver and a WRITE's responder write one payload.
TEST(Responder, WritesLikeReceiverWithoutRecv) {
  const Prediction p = predict_responder(narrow_mlx4(), gather_shape(write, rc, 5000, 1));
  const Prediction receiver = predict_receiver(narrow_mlx4(), gather_shape(send, rc, 5000, 1));
  const Prediction nothing = predict_receiver(narrow_mlx4(), gather_shape(send, rc, 0, 1));
  EXPECT_DOUBLE_EQ(p.pcie.bytes_to_host, receiver.pcie.bytes_to_host - nothing.pcie.bytes_to_host);
}

VerbShape received_inline(Verb verb, std::uint64_t payload) {
  VerbShape shape = gather_shape(verb, rc, payload, 1);
  shape.inline_recv = true;
  return shape;
}

// mlx4 writes the payload into the place of its RECV: 40 B of GRH and 32 B make places of 128 B, of which it fetches 16
// at a time in completions of 128 B.
TEST(InlineReceive, OnMlx4TheRecvHasRoomForThePayload) {
  VerbShape shape = received_inline(send, 32);
  shape.transport = ud;
  shape.max_inline_recv = Bytes(32);
  const PciePerOp p = predict_receiver(narrow_mlx4(), shape).pcie;
  shape.inline_recv = false;
  const PciePerOp without = predict_receiver(narrow_mlx4(), shape).pcie;
  EXPECT_DOUBLE_EQ(p.payload_bytes_to_nic, 128);
  EXPECT_DOUBLE_EQ(without.payload_bytes_to_nic, 16);
  EXPECT_DOUBLE_EQ(p.payload_bytes_to_host, without.payload_bytes_to_host);
}

// 32 B fit a CQE of 64 B, 64 B one of 128 B: no write but the CQE's.
TEST(InlineReceive, FittingPayloadArrivesInCqe) {
  ClusterWire cluster = wide_mlx5();
  EXPECT_EQ(predict_receiver(cluster, received_inline(send, 32)).pcie.bytes_to_host, 90 + 26.0 / 16);
  EXPECT_EQ(predict_receiver(cluster, received_inline(send, 33)).pcie.bytes_to_host, 90 + 33 + 26 + 26.0 / 16);
  cluster.cqe_bytes = Bytes(128);
  EXPECT_EQ(predict_receiver(cluster, received_inline(send, 64)).pcie.bytes_to_host, 154 + 26.0 / 16);
  EXPECT_EQ(predict_receiver(cluster, received_inline(send, 65)).pcie.dma_write_partial_lines, 1);
}

// The result of a READ or atomic comes in the CQE of the request; without a CQE it is written (8 + 26).
TEST(InlineReceive, ResultsOfSignaledReadsAndAtomicsArriveInCqe) {
  for (const Verb verb : {read, fetch_add}) {
    VerbShape shape = received_inline(verb, 8);
    EXPECT_EQ(predict_requester(wide_mlx5(), shape).pcie.bytes_to_host, 90);
    shape.signal_every = 4;
    EXPECT_EQ(predict_requester(wide_mlx5(), shape).pcie.bytes_to_host, 90.0 / 4 + 34 * 3.0 / 4);
  }
  // Inline receive is of no use to a responder, and to a SEND at its requester.
  EXPECT_EQ(predict_responder(wide_mlx5(), received_inline(write, 8)).pcie.bytes_to_host, 34);
  EXPECT_EQ(predict_requester(wide_mlx5(), received_inline(send, 8)).pcie.bytes_to_host, 90 + 26);
}

// 16 RECVs of 16 + 16 B are one read of 512 B: a request, 4 completions, 8 lines. Posting writes the data segment only.
TEST(SharedReceiveQueue, RecvsAre32BytesLong) {
  for (const ClusterWire& cluster : {wide_mlx5(), narrow_mlx4()}) {
    VerbShape shape = header_only_shape(rc, 16);
    shape.shared_recv_queue = true;
    const Prediction p = predict_receiver(cluster, shape);
    EXPECT_EQ(p.wqe_bytes, Bytes(32));
    EXPECT_EQ(p.pcie.dma_read_lines, 8.0 / 16);
    EXPECT_EQ(p.pcie.bytes_to_nic, 32 + 88.0 / 16);
    EXPECT_EQ(p.cpu.ring_bytes, 16);
    EXPECT_EQ(p.cpu.stores, 2 + 1.0 / 16);
  }
}

// 4 RECVs and the slot kept free are a ring of 8.
TEST(SharedReceiveQueue, ShortQueueKeepsASlotFree) {
  VerbShape shape = header_only_shape(rc, 1);
  shape.recv_queue_depth = 4;
  shape.shared_recv_queue = true;
  EXPECT_EQ(predict_receiver(wide_mlx5(), shape).pcie.dma_read_lines, 4.0 / 8);
}

}  // namespace
}  // namespace verbscope
