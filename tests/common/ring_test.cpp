// The ring: its size, and the places of its elements.
#include "common/ring.hpp"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

TEST(Ring, SizeIsAPowerOfTwo) {
  EXPECT_EQ(Ring<int>().size(), 1u);
  EXPECT_EQ(Ring<int>(4).size(), 4u);
  EXPECT_EQ(Ring<int>(5).size(), 8u);
  Ring<int> ring;
  ring.resize(0);
  EXPECT_EQ(ring.size(), 1u);
}

TEST(Ring, HoldsAsManyElementsAsItsSize) {
  Ring<std::uint64_t> ring(4);
  for (std::uint64_t n = 0; n < 10; ++n) ring[n] = n * n;
  for (std::uint64_t n = 6; n < 10; ++n) EXPECT_EQ(ring[n], n * n);
  EXPECT_EQ(ring.place(9), 1u);
}

TEST(Ring, AcceptsCountersThatWrapIn32Bits) {
  Ring<int> ring(8);
  std::uint32_t head = ~std::uint32_t{0};
  ring[head++] = 1;
  ring[head++] = 2;
  EXPECT_EQ(ring[std::uint32_t(head - 2)], 1);
  EXPECT_EQ(ring[std::uint32_t(head - 1)], 2);
  EXPECT_EQ(ring.place(std::uint32_t(head - 1)), 0u);
}

}  // namespace
}  // namespace verbscope
