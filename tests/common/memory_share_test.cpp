#include "common/memory_share.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

#include "common/error.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

constexpr std::size_t kTooMuch = std::numeric_limits<std::size_t>::max() / 2;

TEST(MemoryShare, RejectsMoreThanTheFreeMemory) {
  MemoryShare share;
  share.add(3'000'000, "a buffer");
  EXPECT_THAT(
      message_of<Error>([&] { share.add(kTooMuch, "a buffer"); }),
      testing::AllOf(testing::StartsWith("not enough memory: 9.22e+09 GB for a buffer, 0.003 GB already allocated"),
                     testing::HasSubstr("GB available")));
}

TEST(MemoryShare, IsReturnedByItsOwner) {
  {
    MemoryShare share;
    share.add(1'000'000, "a buffer");
    MemoryShare moved(std::move(share));
    MemoryShare other;
    other = std::move(moved);
  }
  EXPECT_THAT(message_of<Error>([] { MemoryShare().add(kTooMuch, "a buffer"); }),
              testing::HasSubstr("0 GB already allocated"));
}

TEST(MemoryShare, ReportsEachDoubling) {
  testing::internal::CaptureStderr();
  MemoryShare share;
  for (int hundreds = 1; hundreds <= 30; ++hundreds) share.add(100'000'000, "buffers");  // 3 GB, which is only counted
  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_THAT(output, testing::AllOf(testing::HasSubstr("with buffers, this program has allocated 1 GB"),
                                     testing::HasSubstr("allocated 2 GB")));
  EXPECT_EQ(std::ranges::count(output, '\n'), 2) << output;
}

}  // namespace
}  // namespace verbscope
