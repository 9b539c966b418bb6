// Sizes of WQEs against the tables of rdma-core 44 and of Kalia et al., ATC 2016 (Table 1), and the layout of send
// queues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "pcie_model/costs.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using enum Verb;
using enum Transport;
using enum NicFamily;

std::uint64_t used(NicFamily family, Verb verb, Transport transport, std::uint64_t payload, bool inlined) {
  return wqe_size(family, verb, transport, Bytes(payload), inlined).used.value;
}

int lines(NicFamily family, Verb verb, Transport transport, std::uint64_t payload, bool inlined) {
  return wqe_size(family, verb, transport, Bytes(payload), inlined).lines();
}

TEST(WqeSize, Mlx5InlineIsAFixedPartPlusThePayload) {
  for (const std::uint64_t x : {1u, 8u, 28u, 29u, 60u, 61u, 220u, 512u}) {
    EXPECT_EQ(used(mlx5, write, rc, x, true), 36 + x);
    EXPECT_EQ(used(mlx5, write, uc, x, true), 36 + x);
    EXPECT_EQ(used(mlx5, send, rc, x, true), 20 + x);
    EXPECT_EQ(used(mlx5, send, uc, x, true), 20 + x);
    EXPECT_EQ(used(mlx5, send, ud, x, true), 68 + x);
  }
}

TEST(WqeSize, Mlx5LargestInlinePayloadOfNBlocks) {
  for (std::uint64_t n = 1; n <= 8; ++n) {
    const int blocks = static_cast<int>(n);
    EXPECT_EQ(lines(mlx5, write, rc, 64 * n - 36, true), blocks);
    EXPECT_EQ(lines(mlx5, write, rc, 64 * n - 35, true), blocks + 1);
    EXPECT_EQ(lines(mlx5, send, rc, 64 * n - 20, true), blocks);
    EXPECT_EQ(lines(mlx5, send, rc, 64 * n - 19, true), blocks + 1);
    if (n < 2) continue;  // a UD SEND with payload has at least two
    EXPECT_EQ(lines(mlx5, send, ud, 64 * n - 68, true), blocks);
    EXPECT_EQ(lines(mlx5, send, ud, 64 * n - 67, true), blocks + 1);
  }
}

TEST(WqeSize, Mlx4LargestInlinePayloadOfNBlocks) {
  for (std::uint64_t n = 1; n <= 8; ++n) {
    const int blocks = static_cast<int>(n);
    EXPECT_EQ(lines(mlx4, write, rc, 28 + 60 * (n - 1), true), blocks);
    EXPECT_EQ(lines(mlx4, write, uc, 29 + 60 * (n - 1), true), blocks + 1);
    EXPECT_EQ(lines(mlx4, send, rc, 44 + 60 * (n - 1), true), blocks);
    EXPECT_EQ(lines(mlx4, send, uc, 45 + 60 * (n - 1), true), blocks + 1);
    if (n < 2) continue;
    EXPECT_EQ(lines(mlx4, send, ud, 60 * (n - 1), true), blocks);
    EXPECT_EQ(lines(mlx4, send, ud, 60 * (n - 1) + 1, true), blocks + 1);
  }
}

// Each chunk of inline data has 4 bytes of its own: the first reaches from behind the segments to the next 64-byte
// boundary.
TEST(WqeSize, Mlx4CountsAHeaderForEveryChunk) {
  EXPECT_EQ(used(mlx4, write, rc, 28, true), 32u + 4 + 28);
  EXPECT_EQ(used(mlx4, write, rc, 29, true), 32u + 4 + 28 + 4 + 1);
  EXPECT_EQ(used(mlx4, send, rc, 44, true), 16u + 4 + 44);
  EXPECT_EQ(used(mlx4, send, rc, 105, true), 16u + 4 + 44 + 4 + 60 + 4 + 1);
  EXPECT_EQ(used(mlx4, send, ud, 60, true), 64u + 4 + 60);
  EXPECT_EQ(used(mlx4, send, ud, 121, true), 64u + 4 + 60 + 4 + 60 + 4 + 1);
}

// The chunks of inline data are laid out byte by byte as mlx4_post_send copies them.
TEST(WqeSize, Mlx4ClosedFormAgreesWithCopyingByteByByte) {
  const auto copied = [](std::uint64_t fixed, std::uint64_t payload) {
    std::uint64_t at = fixed;
    for (std::uint64_t i = 0; i < payload; ++i) {
      if (i == 0 || at % 64 == 0) at += 4;
      ++at;
    }
    return at;
  };
  for (std::uint64_t x = 1; x <= 512; ++x) {
    EXPECT_EQ(used(mlx4, send, rc, x, true), copied(16, x)) << x;
    EXPECT_EQ(used(mlx4, write, uc, x, true), copied(32, x)) << x;
    EXPECT_EQ(used(mlx4, send, ud, x, true), copied(64, x)) << x;
  }
}

TEST(WqeSize, RowsThatAreTheSameInBothFamilies) {
  for (const NicFamily family : {mlx4, mlx5}) {
    EXPECT_EQ(used(family, send, ud, 0, false), 64u);  // header-only
    EXPECT_EQ(used(family, send, ud, 0, true), 64u);   // an empty inline payload has no segment
    EXPECT_EQ(used(family, send, rc, 0, true), 16u);
    EXPECT_EQ(used(family, read, rc, 64, false), 48u);
    EXPECT_EQ(used(family, write, rc, 64, false), 48u);
    EXPECT_EQ(used(family, write, uc, 64, false), 48u);
    EXPECT_EQ(used(family, send, rc, 64, false), 32u);
    EXPECT_EQ(used(family, send, uc, 64, false), 32u);
    EXPECT_EQ(used(family, send, ud, 64, false), 80u);
    EXPECT_EQ(used(family, compare_swap, rc, 8, false), 64u);
    EXPECT_EQ(used(family, fetch_add, rc, 8, false), 64u);
    EXPECT_EQ(lines(family, fetch_add, rc, 8, false), 1);
    for (const Transport transport : {rc, uc, ud}) EXPECT_EQ(used(family, recv, transport, 64, false), 16u);
  }
}

TEST(WqeSize, PaddingIsToSixteenBytes) {
  EXPECT_EQ(wqe_size(mlx5, write, rc, Bytes(221), true).used, Bytes(257));
  EXPECT_EQ(wqe_size(mlx5, write, rc, Bytes(221), true).padded, Bytes(272));
}

TEST(WqeSize, RefusesUnsupportedVerbs) {
  const auto message = [](Verb verb, Transport transport, bool inlined) {
    try {
      wqe_size(mlx5, verb, transport, Bytes(8), inlined);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message(write, ud, false), AllOf(HasSubstr("UD"), HasSubstr("write")));
  EXPECT_THAT(message(read, uc, false), AllOf(HasSubstr("UC"), HasSubstr("read")));
  EXPECT_THAT(message(fetch_add, ud, false), AllOf(HasSubstr("UD"), HasSubstr("fetch_add")));
  EXPECT_THAT(message(read, rc, true), AllOf(HasSubstr("read"), HasSubstr("inline")));
}

SendQueueLayout layout(NicFamily family, Transport transport, Verb verb, std::uint64_t payload, bool inlined,
                       int depth) {
  return send_queue_layout(family, transport, wqe_size(family, verb, transport, Bytes(payload), inlined),
                           Bytes(inlined ? payload : 0), true, depth);
}

TEST(SendQueueLayout, Mlx5PacksBlocksInAPowerOfTwo) {
  EXPECT_EQ(layout(mlx5, ud, send, 60, true, 128).stride, Bytes(128));
  EXPECT_EQ(layout(mlx5, ud, send, 60, true, 128).ring, Bytes(256 * 64));
  EXPECT_EQ(layout(mlx5, ud, send, 100, true, 128).stride, Bytes(192));
  EXPECT_EQ(layout(mlx5, ud, send, 100, true, 128).ring, Bytes(512 * 64));  // 3 * 128 = 384 blocks
  EXPECT_EQ(layout(mlx5, rc, send, 8, true, 100).ring, Bytes(128 * 64));
}

TEST(SendQueueLayout, Mlx4SlotHoldsTheLargestWqeOfTheCapabilities) {
  EXPECT_EQ(layout(mlx4, ud, send, 60, true, 128).stride, Bytes(128));
  EXPECT_EQ(layout(mlx4, ud, send, 61, true, 128).stride, Bytes(256));   // 3 lines
  EXPECT_EQ(layout(mlx4, ud, send, 64, false, 128).stride, Bytes(128));  // 80 B with one SGE
  EXPECT_EQ(layout(mlx4, rc, send, 64, false, 128).stride, Bytes(64));   // 48 B with one SGE
  EXPECT_EQ(layout(mlx4, rc, send, 28, true, 100).stride, Bytes(64));
  EXPECT_EQ(layout(mlx4, rc, send, 28, true, 100).ring, Bytes(128 * 64));
  // The SEND is 60 B, but a WRITE of 40 B inline would be 32 + 4 + 28 + 4 + 12 = 80.
  EXPECT_EQ(layout(mlx4, rc, send, 40, true, 128).stride, Bytes(128));
}

TEST(SendQueueLayout, Mlx4HeaderOnlyQueueHasSmallestSlots) {
  const WqeSize wqe = wqe_size(mlx4, send, ud, Bytes(0), false);
  EXPECT_EQ(send_queue_layout(mlx4, ud, wqe, Bytes(0), false, 128).stride, Bytes(64));
  EXPECT_EQ(send_queue_layout(mlx4, ud, wqe, Bytes(0), true, 128).stride, Bytes(128));
}

// mlx4_calc_sq_wqe_size of rdma-core 44, written out from the driver's own arithmetic.
TEST(SendQueueLayout, Mlx4SlotAgreesWithTheDriversArithmetic) {
  const auto driver = [](Transport transport, std::uint64_t max_inline) {
    const std::uint64_t head = transport == ud ? 0 : 32;
    const std::uint64_t segments = (max_inline + head + 59) / 60;
    const std::uint64_t data = std::max<std::uint64_t>((max_inline + 4 * segments + 15) / 16, 1) * 16;
    std::uint64_t size = data + (transport == ud ? 48 : 16);
    if (transport == rc) size = std::max<std::uint64_t>(size, 48);
    size = std::max<std::uint64_t>(size, 32) + 16;
    std::uint64_t slot = 64;
    while (slot < size) slot *= 2;
    return slot;
  };
  for (const Transport transport : {rc, uc, ud}) {
    for (std::uint64_t x = 0; x <= 512; ++x) {
      const WqeSize wqe = wqe_size(mlx4, send, transport, Bytes(x), true);
      EXPECT_EQ(send_queue_layout(mlx4, transport, wqe, Bytes(x), true, 128).stride.value, driver(transport, x))
          << to_string(transport) << " " << x;
    }
  }
}

}  // namespace
}  // namespace verbscope
