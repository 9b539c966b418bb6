// The assignment of doorbell registers to QPs, as rdma-core's mlx5 provider has it.
#include <gtest/gtest.h>

#include <map>

#include "wire/doorbell.hpp"

namespace verbscope {
namespace {

TEST(DoorbellRegisters, Of16FourAreExclusive) {
  const DoorbellRegisters registers;
  EXPECT_EQ(registers.exclusive(), 4u);
  EXPECT_EQ(registers.shared(), 12u);
}

TEST(DoorbellRegisters, OfMoreThan16TwelveAreShared) {
  EXPECT_EQ(DoorbellRegisters{.total = 100}.exclusive(), 88u);
  EXPECT_EQ(DoorbellRegisters{.total = 8}.shared(), 4u);
}

TEST(DoorbellRegisters, FirstQpsAreExclusiveAndOthersShareEvenly) {
  const DoorbellRegisters registers;
  std::map<std::uint32_t, int> users;
  for (std::uint32_t qp = 0; qp < 96; ++qp) ++users[doorbell_register_of(registers, qp)];
  EXPECT_EQ(users.size(), 16u);
  for (const auto& [number, count] : users) {
    if (is_shared(registers, number)) {
      EXPECT_NEAR(count, 92.0 / 12, 1) << number;
    } else {
      EXPECT_EQ(count, 1) << number;
    }
  }
}

}  // namespace
}  // namespace verbscope
