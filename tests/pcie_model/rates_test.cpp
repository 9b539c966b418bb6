// Rate bounds, the published figures of Kalia et al., ATC 2016, and links of other generations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "pcie_model/costs.hpp"
#include "pcie_model/predict.hpp"
#include "tests/pcie_model/clusters.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using enum Verb;
using enum Transport;

ClusterWire cib() {
  const std::string path = VERBSCOPE_SOURCE_DIR "/configs/clusters/cib.json";
  return read_cluster_wire(read_json_file(path), path);
}

TEST(PublishedFigures, TenWqesOf65Bytes) {
  const WqePrediction p = predict_wqes(cib(), Bytes(65), 10);
  EXPECT_EQ(p.lines_per_wqe, 2);
  EXPECT_EQ(p.mmio_bytes_to_nic, Bytes(1800));        // 10 * 2 * (64 + 26)
  EXPECT_EQ(p.doorbell_bytes_to_nic, Bytes(1534));    // 8 + 26 + 10 * (128 + 22)
  EXPECT_NEAR(p.dma_read_mb_per_s, 13443.072, 1e-9);  // 15753.6 * 128 / 150
  EXPECT_NEAR(p.mmio_lines_per_us, 175.04, 1e-9);     // 15753.6 / 90
  EXPECT_NEAR(p.dma_read_limit_mops, 105.024, 1e-9);  // 13443.072 / 128
  EXPECT_NEAR(p.mmio_limit_mops, 87.52, 1e-9);        // 175.04 / 2
}

TEST(PublishedFigures, LimitsOfUdSendOnConnectIb) {
  const Prediction single = predict_requester(cib(), inline_shape(send, ud, 60, 1));
  EXPECT_EQ(single.binding, "mmio");
  EXPECT_NEAR(single.bound_mops, 87.52, 1e-9);
  const Prediction list = predict_requester(cib(), inline_shape(send, ud, 60, 16));
  EXPECT_NEAR(bound(list, "dma_read"), 105.024, 1e-9);
  // Doorbells share the direction: 128 + 22 + 34 / 16 bytes per WQE.
  EXPECT_EQ(list.binding, "pcie_to_nic");
  EXPECT_NEAR(list.bound_mops, 15753.6 / 152.125, 1e-9);
}

TEST(PredictWqes, RefusesImpossibleNumbers) {
  EXPECT_THROW(predict_wqes(cib(), Bytes(0), 10), Error);
  EXPECT_THROW(predict_wqes(cib(), Bytes(1025), 10), Error);
  EXPECT_THROW(predict_wqes(cib(), Bytes(64), 0), Error);
  EXPECT_THROW(predict_wqes(cib(), Bytes(64), 32769), Error);
}

// Per operation to the host: CQE 90. Per operation out: 8 + 12 + 8 + 60 + 6 = 94 B over 2 * 6817.5 MB/s.
TEST(Bounds, EveryResourceOfASinglePost) {
  const Prediction p = predict_requester(wide_mlx5(), inline_shape(send, ud, 60, 1));
  EXPECT_NEAR(bound(p, "mmio"), 87.52, 1e-9);
  EXPECT_EQ(bound(p, "dma_read"), 0);
  EXPECT_NEAR(bound(p, "pcie_to_nic"), 15753.6 / 180, 1e-9);
  EXPECT_NEAR(bound(p, "pcie_to_host"), 15753.6 / 90, 1e-9);
  EXPECT_NEAR(bound(p, "wire_out"), 13635.0 / 94, 1e-9);
  EXPECT_EQ(bound(p, "wire_in"), 0);
}

TEST(Bounds, OnePortHalvesTheWire) {
  VerbShape shape = inline_shape(send, ud, 60, 1);
  shape.ports_used = 1;
  EXPECT_NEAR(bound(predict_requester(wide_mlx5(), shape), "wire_out"), 6817.5 / 94, 1e-9);
}

// A READ of 4096 B: request 8 + 12 + 16 + 6 = 42, response 8 + 12 + 4 + 4096 + 6 = 4126.
TEST(Bounds, LargeReadIsBoundByTheWireIn) {
  const Prediction p = predict_requester(wide_mlx5(), gather_shape(read, rc, 4096, 1));
  EXPECT_NEAR(bound(p, "wire_out"), 13635.0 / 42, 1e-9);
  EXPECT_NEAR(bound(p, "wire_in"), 13635.0 / 4126, 1e-9);
  EXPECT_EQ(p.binding, "wire_in");
}

TEST(PacketBytes, OnePacket) {
  const Bytes mtu(4096);
  EXPECT_EQ(request_bytes(send, ud, Bytes(0), true, mtu), Bytes(8 + 12 + 8 + 4 + 6));
  EXPECT_EQ(request_bytes(send, rc, Bytes(61), false, mtu), Bytes(8 + 12 + 64 + 6));  // padded to 4
  EXPECT_EQ(request_bytes(write, uc, Bytes(64), false, mtu), Bytes(8 + 12 + 16 + 64 + 6));
  EXPECT_EQ(request_bytes(read, rc, Bytes(64), false, mtu), Bytes(8 + 12 + 16 + 6));
  EXPECT_EQ(request_bytes(fetch_add, rc, Bytes(8), false, mtu), Bytes(8 + 12 + 28 + 6));
  EXPECT_EQ(response_bytes(read, Bytes(64), mtu), Bytes(8 + 12 + 4 + 64 + 6));
  EXPECT_EQ(response_bytes(fetch_add, Bytes(8), mtu), Bytes(8 + 12 + 4 + 8 + 6));
  EXPECT_EQ(response_bytes(write, Bytes(64), mtu), Bytes(0));
}

// RETH goes with the first packet only; AETH with the first and the last response.
TEST(PacketBytes, SeveralPackets) {
  const Bytes mtu(1024);
  EXPECT_EQ(request_bytes(write, rc, Bytes(3000), false, mtu), Bytes(3 * 26 + 16 + 3000));
  EXPECT_EQ(response_bytes(read, Bytes(3000), mtu), Bytes(3 * 26 + 2 * 4 + 3000));
  EXPECT_EQ(response_bytes(read, Bytes(2048), mtu), Bytes(2 * 26 + 2 * 4 + 2048));
}

TEST(WithPcie, OtherGenerationSetsRateAndHeaders) {
  const ClusterWire gen5 = with_pcie(wide_mlx5(), 5, std::nullopt);
  EXPECT_EQ(gen5.pcie.lanes, 16);
  EXPECT_NEAR(gen5.pcie.bandwidth().value * 1e-6, 32000.0 / 8 * 128 / 130 * 16, 1e-6);
  EXPECT_EQ(gen5.pcie.request_header, Bytes(24));
  EXPECT_EQ(gen5.pcie.completion_header, Bytes(20));
  EXPECT_EQ(gen5.pcie.rcb, Bytes(128));
  const Prediction p = predict_requester(gen5, inline_shape(send, ud, 60, 1));
  EXPECT_NEAR(bound(p, "mmio"), 4000.0 * 128 / 130 * 16 / 88 / 2, 1e-9);
}

TEST(WithPcie, FlitsOfGeneration6Carry236Of256Bytes) {
  const ClusterWire gen6 = with_pcie(wide_mlx5(), 6, 16);
  EXPECT_NEAR(gen6.pcie.lane_mb_per_s, 8000.0 * 236 / 256, 1e-9);
  EXPECT_EQ(gen6.pcie.request_header, Bytes(16));
}

TEST(WithPcie, TheSameGenerationKeepsTheProfilesHeaders) {
  const ClusterWire half = with_pcie(wide_mlx5(), 3, 8);
  EXPECT_EQ(half.pcie.request_header, Bytes(26));
  EXPECT_EQ(half.pcie.lane_mb_per_s, 984.6);
  EXPECT_EQ(half.pcie.lanes, 8);
}

TEST(WithPcie, EachGenerationUpTo5NearlyDoubles) {
  for (const PcieGeneration& generation : kPcieGenerations) {
    const double encoding = generation.generation <= 2 ? 0.8 : generation.generation <= 5 ? 128.0 / 130 : 236.0 / 256;
    EXPECT_NEAR(generation.lane_mb_per_s, generation.gt_per_s * 125 * encoding, 1e-9);
  }
}

TEST(WithPcie, RefusesUnknownGenerationAndWidth) {
  const auto message = [](std::optional<int> generation, std::optional<int> lanes) {
    try {
      with_pcie(wide_mlx5(), generation, lanes);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message(7, std::nullopt), AllOf(HasSubstr("PCIe generation 7"), HasSubstr("1 to 6")));
  EXPECT_THAT(message(std::nullopt, 3), AllOf(HasSubstr("PCIe x3"), HasSubstr("x1, x2, x4, x8, x12, x16, x32")));
}

}  // namespace
}  // namespace verbscope
