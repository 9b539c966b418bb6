// DMA transfers: counts by hand, and the mean over a ring against a walk over every byte of every read.
#include <gtest/gtest.h>

#include "pcie_model/costs.hpp"
#include "tests/pcie_model/clusters.hpp"

namespace verbscope {
namespace {

const PcieLink kLink = wide_mlx5().pcie;

TEST(DmaRead, SplitsRequestsAtMrrsAndCompletionsAtRcb) {
  // 600 B from a multiple of 128: 512 + 88 asked for; completions 4 of 128 and one of 88; 9.4 lines.
  const PciePerOp cost = dma_read(kLink, 0, Bytes(600));
  EXPECT_EQ(cost.tlps_to_host, 2);
  EXPECT_EQ(cost.bytes_to_host, 2 * 26);
  EXPECT_EQ(cost.tlps_to_nic, 5);
  EXPECT_EQ(cost.bytes_to_nic, 600 + 5 * 22);
  EXPECT_EQ(cost.payload_bytes_to_nic, 600);
  EXPECT_EQ(cost.dma_read_lines, 10);
}

TEST(DmaRead, UnalignedStartCostsACompletionPerRequest) {
  // 1024 B from 64: requests [64,576) and [576,1088), each of 64 + 3 * 128 + 64.
  const PciePerOp cost = dma_read(kLink, 64, Bytes(1024));
  EXPECT_EQ(cost.tlps_to_host, 2);
  EXPECT_EQ(cost.tlps_to_nic, 10);
}

// Completions of up to 256 B that end at multiples of 64: [64,320) and [320,576); then, from 100, [100,320), [320,576)
// and [576,612).
TEST(DmaRead, CompletionsLongerThanTheRcbBeginAtIt) {
  PcieLink link = kLink;
  link.rcb = Bytes(64);
  link.completion = Bytes(256);
  EXPECT_EQ(dma_read(link, 64, Bytes(512)).tlps_to_nic, 2);
  EXPECT_EQ(dma_read(link, 100, Bytes(512)).tlps_to_nic, 3);
  EXPECT_EQ(dma_read(link, 100, Bytes(512)).bytes_to_nic, 512 + 3 * 22);
}

TEST(DmaRead, FourBytesOverTwoLinesCountTwo) {
  EXPECT_EQ(dma_read(kLink, 62, Bytes(4)).dma_read_lines, 2);
  EXPECT_EQ(dma_read(kLink, 60, Bytes(4)).dma_read_lines, 1);
}

TEST(DmaWrite, SplitsAtMpsAndCountsPartialLines) {
  const PciePerOp cost = dma_write(kLink, 0, Bytes(600));  // 256 + 256 + 88; 9 whole lines and 24 B
  EXPECT_EQ(cost.tlps_to_host, 3);
  EXPECT_EQ(cost.bytes_to_host, 600 + 3 * 26);
  EXPECT_EQ(cost.dma_write_full_lines, 9);
  EXPECT_EQ(cost.dma_write_partial_lines, 1);
  EXPECT_EQ(dma_write(kLink, 0, Bytes(32)).dma_write_partial_lines, 1);
  EXPECT_EQ(dma_write(kLink, 0, Bytes(64)).dma_write_partial_lines, 0);
  EXPECT_EQ(dma_write(kLink, 0, Bytes(64)).dma_write_full_lines, 1);
}

// 8 B of the first line and all of the second; 4 B on either side of a border; 20 B within a line; 8 B, 63 lines, 56 B.
TEST(DmaWrite, UnalignedStartWritesItsFirstLineInPart) {
  EXPECT_EQ(dma_write(kLink, 56, Bytes(72)).dma_write_full_lines, 1);
  EXPECT_EQ(dma_write(kLink, 56, Bytes(72)).dma_write_partial_lines, 1);
  EXPECT_EQ(dma_write(kLink, 60, Bytes(8)).dma_write_full_lines, 0);
  EXPECT_EQ(dma_write(kLink, 60, Bytes(8)).dma_write_partial_lines, 2);
  EXPECT_EQ(dma_write(kLink, 10, Bytes(20)).dma_write_partial_lines, 1);
  const PciePerOp packet = dma_write(kLink, 120, Bytes(4096));
  EXPECT_EQ(packet.dma_write_full_lines, 63);
  EXPECT_EQ(packet.dma_write_partial_lines, 2);
  EXPECT_EQ(packet.tlps_to_host, 16);
}

TEST(Dma, EmptyTransferIsFree) {
  EXPECT_EQ(dma_read(kLink, 64, Bytes(0)).bytes_to_host, 0);
  EXPECT_EQ(dma_write(kLink, 8, Bytes(0)).bytes_to_host, 0);
  EXPECT_EQ(dma_write(kLink, 8, Bytes(0)).dma_write_partial_lines, 0);
}

// One header-only post list of 3 on a ring of 4 blocks starts at blocks 0, 3, 2, 1: [0,192) is one request with 2
// completions; [192,256) and [0,128) two with 2; [128,256) and [0,64) two with 2; [64,256) one with 2.
TEST(RingRead, MeanOverASmallRingByHand) {
  const PciePerOp mean = ring_read_mean(kLink, Bytes(256), Bytes(192), Bytes(192));
  EXPECT_DOUBLE_EQ(mean.tlps_to_host, 1.5);
  EXPECT_DOUBLE_EQ(mean.tlps_to_nic, 2);
  EXPECT_DOUBLE_EQ(mean.dma_read_lines, 3);
  EXPECT_DOUBLE_EQ(mean.payload_bytes_to_nic, 192);
}

// Second implementation: follows the producer index for a whole cycle and looks at every byte.
struct Walk {
  double requests = 0, completions = 0, lines = 0, bytes = 0;
};

Walk walk(const PcieLink& link, std::uint64_t ring, std::uint64_t step, std::uint64_t length) {
  Walk sum;
  std::uint64_t producer = 0;
  int reads = 0;
  do {
    std::uint64_t in_request = link.mrrs.value, boundary = 0;
    for (std::uint64_t i = 0; i < length; ++i) {
      const std::uint64_t address = (producer + i) % ring;
      const bool new_read = i == 0 || address == 0;
      const bool new_request = new_read || in_request == link.mrrs.value;
      if (new_request) in_request = 0;
      if (new_request) boundary = address - address % link.rcb.value;
      sum.requests += new_request;
      sum.completions += new_request || (address - boundary) % link.completion.value == 0;
      sum.lines += new_read || address % 64 == 0;
      sum.bytes += 1;
      ++in_request;
    }
    producer = (producer + step) % ring;
    ++reads;
  } while (producer != 0);
  return {sum.requests / reads, sum.completions / reads, sum.lines / reads, sum.bytes / reads};
}

void expect_same(const PcieLink& link, std::uint64_t ring, std::uint64_t step, std::uint64_t length) {
  SCOPED_TRACE(testing::Message() << "ring " << ring << " step " << step << " length " << length);
  const Walk expected = walk(link, ring, step, length);
  const PciePerOp mean = ring_read_mean(link, Bytes(ring), Bytes(step), Bytes(length));
  EXPECT_NEAR(mean.tlps_to_host, expected.requests, 1e-9);
  EXPECT_NEAR(mean.tlps_to_nic, expected.completions, 1e-9);
  EXPECT_NEAR(mean.dma_read_lines, expected.lines, 1e-9);
  EXPECT_NEAR(mean.payload_bytes_to_nic, expected.bytes, 1e-9);
}

TEST(RingRead, MeanAgreesWithAWalkOverEveryByte) {
  PcieLink small_requests = kLink;
  small_requests.mrrs = Bytes(128);
  PcieLink long_completions = kLink;
  long_completions.rcb = Bytes(64);
  long_completions.completion = Bytes(256);
  for (const PcieLink& link : {kLink, small_requests, long_completions}) {
    for (const std::uint64_t slots : {1u, 2u, 8u, 32u}) {
      for (const std::uint64_t stride : {16u, 64u, 128u, 192u, 320u}) {
        std::uint64_t ring = 64;
        while (ring < slots * stride) ring *= 2;
        for (const std::uint64_t list : {1u, 2u, 3u, 5u, 7u, 16u, 31u, 32u}) {
          if (list > slots) continue;
          expect_same(link, ring, list * stride, list * stride);
          if (stride > 64) expect_same(link, ring, list * stride, (list - 1) * stride + 64);
        }
      }
    }
  }
}

}  // namespace
}  // namespace verbscope
