// Predictions of one machine that does several things for an operation, added up by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "common/error.hpp"
#include "pcie_model/predict.hpp"
#include "tests/pcie_model/clusters.hpp"

namespace verbscope {
namespace {

Prediction part(std::vector<RateBound> bounds) {
  Prediction p;
  p.wire.name = "some";
  p.role = "requester";
  p.pcie.dma_read_lines = 2;
  p.cpu.stores = 10;
  p.bounds = std::move(bounds);
  return p;
}

TEST(Together, EventsAndStoresAddUpByWeight) {
  const Prediction sum = predict_together("server", {{part({{"mmio", 10}})}, {part({{"mmio", 10}}), 0.5}});
  EXPECT_EQ(sum.role, "server");
  EXPECT_EQ(sum.wire.name, "some");
  EXPECT_EQ(sum.pcie.dma_read_lines, 3);
  EXPECT_EQ(sum.cpu.stores, 15);
}

// 20 Mops are 50 ns each, 30 Mops 33.3 ns: 83.3 ns of wire_out, 12 Mops. mmio serves one part only, at 15 Mops.
TEST(Together, TimesOfPartsOnAResourceAddUp) {
  const Prediction sum =
      predict_together("server", {{part({{"mmio", 15}, {"wire_out", 20}})}, {part({{"wire_out", 30}})}});
  ASSERT_EQ(sum.bounds.size(), 2u);
  EXPECT_EQ(sum.bounds[0].resource, "mmio");
  EXPECT_DOUBLE_EQ(sum.bounds[0].mops, 15);
  EXPECT_EQ(sum.bounds[1].resource, "wire_out");
  EXPECT_DOUBLE_EQ(sum.bounds[1].mops, 12);
  EXPECT_EQ(sum.binding, "wire_out");
  EXPECT_DOUBLE_EQ(sum.bound_mops, 12);
}

TEST(Together, PartOfWeightZeroHasNoBound) {
  const Prediction sum = predict_together("server", {{part({{"mmio", 15}})}, {part({{"wire_out", 1}}), 0}});
  ASSERT_EQ(sum.bounds.size(), 1u);
  EXPECT_EQ(sum.binding, "mmio");
}

// A doorbell of 8 + 26 B; an entry of 64 + 26 and a message of 4 + 26 B: 34 and 120 B for each of 0.5 events. The READ
// alone takes a line of 64 + 26 B to the adapter, and 64 + 26 B each for its result and its CQE to the host.
TEST(CompletionEvents, AreADoorbellAnEntryAndAnInterrupt) {
  const Prediction polled = predict_requester(wide_mlx5(), gather_shape(Verb::read, Transport::rc, 64, 1));
  const Prediction woken = with_completion_events(polled, 0.5);
  EXPECT_EQ(woken.role, "requester");
  EXPECT_EQ(woken.shape.events, 0.5);
  EXPECT_EQ(woken.pcie.mmio_doorbells, 0.5);
  EXPECT_EQ(woken.pcie.dma_write_full_lines, 2 + 0.5);
  EXPECT_EQ(woken.pcie.dma_write_partial_lines, 0.5);
  EXPECT_EQ(woken.pcie.bytes_to_nic, 90 + 17);
  EXPECT_EQ(woken.pcie.bytes_to_host, 180 + 60);
  EXPECT_EQ(woken.cpu.mmio_bytes, 64 + 4);
  const double link = wide_mlx5().pcie.bandwidth().value * 1e-6;
  const auto mops = [&woken](const char* resource) {
    return std::ranges::find(woken.bounds, resource, &RateBound::resource)->mops;
  };
  EXPECT_DOUBLE_EQ(mops("pcie_to_nic"), link / 107);
  EXPECT_DOUBLE_EQ(mops("pcie_to_host"), link / 240);
}

TEST(Together, RefusesUnusedParts) {
  EXPECT_THROW(predict_together("server", {}), Error);
  EXPECT_THROW(predict_together("server", {{part({{"mmio", 15}}), 0}}), Error);
  EXPECT_THROW(predict_together("server", {{part({{"mmio", 15}}), -1}}), Error);
}

}  // namespace
}  // namespace verbscope
