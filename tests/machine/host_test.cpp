// Parts that depend on the machine: libibverbs without a device, memory, waits.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "machine/memory.hpp"
#include "machine/node.hpp"
#include "tests/verbs/mock_provider.hpp"
#include "verbs/host_provider.hpp"

namespace verbscope {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST(HostProvider, ListsDevicesAndRejectsAnUnknownOne) {
  HostProvider provider;
  const auto names = provider.device_names();
  EXPECT_EQ(std::ranges::find(names, "no_such_device"), names.end());
  errno = 0;
  EXPECT_EQ(provider.open("no_such_device"), nullptr);
  EXPECT_EQ(errno, ENODEV);
}

TEST(Buffer, IsZeroedAlignedAndHasTheRequestedSize) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const bool huge : {false, true}) {
    const Buffer buffer(Bytes(3 * page + 1), huge);
    EXPECT_EQ(buffer.size(), 3 * page + 1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % page, 0u);
    EXPECT_TRUE(std::ranges::all_of(buffer.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
    buffer.bytes().back() = std::byte{1};
  }
}

TEST(Buffer, DescribesItsPages) {
  EXPECT_THAT(Buffer(Bytes(100), false).describe(), HasSubstr("huge pages: not asked for"));
  const Buffer buffer(Bytes(100));
  EXPECT_THAT(buffer.describe(), HasSubstr(buffer.huge() ? "100 bytes on huge pages of 2 MiB"
                                                         : "100 bytes on ordinary pages of 4 KiB; huge pages: "));
}

TEST(Buffer, UsesTheRequestedPageSizeOrThrows) {
  const Buffer small(Bytes(5000), PageSize::kb4);
  EXPECT_EQ(small.describe(), "5000 bytes on ordinary pages of 4 KiB");
  EXPECT_TRUE(std::ranges::all_of(small.bytes(), [](std::byte byte) { return byte == std::byte{0}; }));
  const Buffer untouched(Bytes(std::uint64_t{1} << 40), PageSize::on_demand);  // more than the machine has
  EXPECT_EQ(untouched.bytes().back(), std::byte{0});
  try {
    EXPECT_TRUE(Buffer(Bytes(5000), PageSize::mb2).huge());
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AnyOf(testing::StartsWith("allocate 5000 bytes on huge pages of 2 MiB: ")));
    EXPECT_THAT(error.what(), HasSubstr("/proc/sys/vm/nr_hugepages"));
  }
}

TEST(Buffer, RejectsZeroAndTooLargeSizes) {
  EXPECT_EQ(error_of([] { Buffer(Bytes(0)); }), "allocate a buffer of 0 bytes: the size must be at least 1");
  EXPECT_THAT(error_of([] { Buffer(Bytes(std::uint64_t{1} << 60)); }), HasSubstr("1.15e+09 GB for buffers"));
}

TEST(Buffer, MoveKeepsTheMemory) {
  Buffer first(Bytes(10), false);
  std::byte* const memory = first.data();
  Buffer second(std::move(first));
  EXPECT_EQ(second.data(), memory);
  first = Buffer(Bytes(20), false);
  std::swap(first, second);
  EXPECT_EQ(first.data(), memory);
  EXPECT_EQ(second.size(), 20u);
}

TEST(HostEvent, TimesOutWithoutAnEvent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // a channel without events
  ibv_comp_channel channel{.context = nullptr, .fd = ends[0], .refcnt = 0};
  const HostNode node;
  const Picos before = node.now();
  EXPECT_EQ(node.await_event(&channel, std::chrono::milliseconds(2)), nullptr);
  EXPECT_EQ(errno, ETIMEDOUT);
  EXPECT_GE(node.now() - before, Picos(std::chrono::milliseconds(2)) * 99 / 100);  // two clocks
  close(ends[0]);
  close(ends[1]);
}

TEST(HostEvent, FailsOnAClosedChannel) {
  ibv_comp_channel channel{.context = nullptr, .fd = 1'000'000, .refcnt = 0};
  EXPECT_EQ(HostNode{}.await_event(&channel, std::chrono::seconds(10)), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST(HostNode, ClockAdvancesAndWorkDoesNotWait) {
  const HostNode node;
  const Picos before = node.now();
  node.idle();
  node.compute(Nanos(1'000'000'000));
  const Picos after = node.now();
  EXPECT_GE(after, before);
  EXPECT_LT(after - before, Picos(Nanos(1'000'000'000)));  // compute() does not wait
}

}  // namespace
}  // namespace verbscope
