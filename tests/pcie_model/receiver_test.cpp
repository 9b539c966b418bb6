// PCIe events of the side that posts RECVs, counted by hand.
#include <gtest/gtest.h>

#include "tests/pcie_model/clusters.hpp"

namespace verbscope {
namespace {

using enum Verb;
using enum Transport;

// 16 RECVs of 16 B are one read of 256 B: a request, 2 completions, 4 lines. Then 60 B of payload (a part of a line,
// 86) and a CQE (90).
TEST(Receiver, PayloadAndCompletion) {
  const Prediction p = predict_receiver(wide_mlx5(), inline_shape(send, ud, 60, 1));
  EXPECT_EQ(p.method, PostMethod::doorbell_record);
  EXPECT_EQ(p.pcie.dma_read_lines, 4.0 / 16);
  EXPECT_EQ(p.pcie.dma_write_full_lines, 1);
  EXPECT_EQ(p.pcie.dma_write_partial_lines, 1);
  EXPECT_EQ(p.pcie.mmio_wc_lines, 0);
  EXPECT_EQ(p.pcie.mmio_doorbells, 0);
  EXPECT_EQ(p.pcie.tlps_to_nic, 2.0 / 16);
  EXPECT_EQ(p.pcie.tlps_to_host, 2 + 1.0 / 16);
  EXPECT_EQ(p.pcie.bytes_to_nic, 16 + 44.0 / 16);
  EXPECT_EQ(p.pcie.bytes_to_host, 86 + 90 + 26.0 / 16);
}

// The IPv4 header takes 40 bytes in front of the payload, the end of one line: a request more, 26 + 40 bytes.
TEST(Receiver, RoceWritesTheHeaderOfADatagram) {
  ClusterWire roce = wide_mlx5();
  roce.link_type = LinkType::roce_v2;
  const Prediction without = predict_receiver(wide_mlx5(), inline_shape(send, ud, 48, 1));
  const Prediction with = predict_receiver(roce, inline_shape(send, ud, 48, 1));
  EXPECT_EQ(with.pcie.dma_write_partial_lines, without.pcie.dma_write_partial_lines + 1);
  EXPECT_EQ(with.pcie.tlps_to_host, without.pcie.tlps_to_host + 1);
  EXPECT_EQ(with.pcie.bytes_to_host, without.pcie.bytes_to_host + 66);
  const VerbShape connected = inline_shape(send, rc, 48, 1);
  EXPECT_EQ(predict_receiver(roce, connected).pcie.bytes_to_host,
            predict_receiver(wide_mlx5(), connected).pcie.bytes_to_host);
}

TEST(Receiver, HeaderOnlyWritesTheCompletionAlone) {
  const Prediction p = predict_receiver(wide_mlx5(), header_only_shape(ud, 1));
  EXPECT_EQ(p.pcie.dma_write_full_lines, 1);
  EXPECT_EQ(p.pcie.dma_write_partial_lines, 0);
  EXPECT_EQ(p.pcie.bytes_to_host, 90 + 26.0 / 16);
}

TEST(Receiver, CompletionOfHalfALineIsPartial) {
  const Prediction p = predict_receiver(narrow_mlx4(), header_only_shape(ud, 1));
  EXPECT_EQ(p.pcie.dma_write_full_lines, 0);
  EXPECT_EQ(p.pcie.dma_write_partial_lines, 1);
}

// Groups of 2 RECVs are 32 B: each read touches a line, so a line is read twice.
TEST(Receiver, SmallPrefetchGroupsReadALineMoreThanOnce) {
  ClusterWire cluster = wide_mlx5();
  cluster.recv_prefetch = 2;
  const Prediction p = predict_receiver(cluster, header_only_shape(ud, 1));
  EXPECT_DOUBLE_EQ(p.pcie.dma_read_lines, 1.0 / 2);
  EXPECT_DOUBLE_EQ(p.pcie.bytes_to_nic, 16 + 22.0 / 2);
}

TEST(Receiver, PostingStoresTheWqeAndOneRecordPerList) {
  const Prediction p = predict_receiver(wide_mlx5(), header_only_shape(ud, 16));
  EXPECT_EQ(p.cpu.ring_bytes, 16);
  EXPECT_EQ(p.cpu.record_bytes, 4.0 / 16);
  EXPECT_EQ(p.cpu.mmio_bytes, 0);
  EXPECT_EQ(p.cpu.stores, 2 + 1.0 / 16);
}

// A queue shorter than a group fetches what there is.
TEST(Receiver, ShortQueueIsOneGroup) {
  VerbShape shape = header_only_shape(ud, 1);
  shape.recv_queue_depth = 4;
  EXPECT_EQ(predict_receiver(wide_mlx5(), shape).pcie.dma_read_lines, 1.0 / 4);
}

// UD header 8 + 12 + 8, immediate 4, CRCs 6: 38 B; two ports of 54.54 Gb/s.
TEST(Receiver, InboundWireIsABound) {
  const Prediction p = predict_receiver(wide_mlx5(), header_only_shape(ud, 1));
  EXPECT_EQ(p.bounds.back().resource, "wire_in");
  EXPECT_NEAR(p.bounds.back().mops, 2 * 54.54e3 / 8 / 38, 1e-6);
}

}  // namespace
}  // namespace verbscope
