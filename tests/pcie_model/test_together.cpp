// Predictions of one machine that does several things for an operation, added up by hand.
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "pcie_model/together.hpp"

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
TEST(Together, AResourceServesThePartsOneAfterTheOther) {
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

TEST(Together, APartOfWeightZeroBindsNothing) {
  const Prediction sum = predict_together("server", {{part({{"mmio", 15}})}, {part({{"wire_out", 1}}), 0}});
  ASSERT_EQ(sum.bounds.size(), 1u);
  EXPECT_EQ(sum.binding, "mmio");
}

TEST(Together, NeedsPartsThatAreTaken) {
  EXPECT_THROW(predict_together("server", {}), Error);
  EXPECT_THROW(predict_together("server", {{part({{"mmio", 15}}), 0}}), Error);
  EXPECT_THROW(predict_together("server", {{part({{"mmio", 15}}), -1}}), Error);
}

}  // namespace
}  // namespace verbscope
