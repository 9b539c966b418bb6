// The slots of requests by WRITE, the requests of HERD, and the tags of responses.
#include "systems/requests/request_slots.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "systems/herd/message.hpp"

namespace verbscope::herd {
namespace {

TEST(SlotLayout, ASlotIsFoundByTheFormulaOfThePaper) {
  const SlotLayout region{.servers = 2, .clients = 3, .window = 4, .request_bytes = put_bytes(32)};
  EXPECT_EQ(region.slot_index(0, 0, 0), 0u);
  EXPECT_EQ(region.slot_index(0, 2, 5), 9u);   // 0 * 12 + 2 * 4 + 5 mod 4
  EXPECT_EQ(region.slot_index(1, 2, 5), 21u);  // 1 * 12 + 2 * 4 + 1
  EXPECT_EQ(region.slot_index(1, 2, 9), 21u);
  EXPECT_EQ(region.slot_end(1, 2, 5), 22u * 64);
}

TEST(SlotLayout, ASlotHasTheLinesOfAPut) {
  // 18 bytes beside the value: length and hash.
  EXPECT_EQ(SlotLayout{.request_bytes = put_bytes(46)}.slot_bytes(), 64u);
  EXPECT_EQ(SlotLayout{.request_bytes = put_bytes(47)}.slot_bytes(), 128u);
  EXPECT_EQ(SlotLayout{.request_bytes = put_bytes(1000)}.slot_bytes(), 1024u);
}

TEST(SlotLayout, NothingOverlaps) {
  const SlotLayout region{.servers = 2, .clients = 3, .window = 2, .request_bytes = put_bytes(47)};
  std::vector<int> uses(region.bytes());
  const auto use = [&uses](std::uint64_t end, std::uint64_t bytes) {
    for (std::uint64_t at = end - bytes; at < end; ++at) ++uses.at(at);
  };
  for (std::uint64_t s = 0; s < 2; ++s) {
    for (std::uint64_t c = 0; c < 3; ++c) {
      for (std::uint64_t r = 0; r < 2; ++r) {
        use(region.slot_end(s, c, r), put_bytes(47));
        use(region.retry_number(s, c, r) + 8, put_bytes(47) + 8);
      }
    }
    use(region.bell(s) + 8, 8);
  }
  EXPECT_EQ(std::ranges::count_if(uses, [](int n) { return n > 1; }), 0);
  EXPECT_EQ(region.polled_begin(1), region.slot_end(1, 0, 0) - region.slot_bytes());
  EXPECT_EQ(region.polled_begin(1) + region.polled_bytes(), region.slots_end());
}

TEST(Request, IsReadAsItWasWritten) {
  std::vector<std::byte> slot(1024);
  const KeyHash key{.low = 0x0123456789abcdef, .high = 0xfedcba9876543210};
  const auto fill = [](std::byte* value) { std::memset(value, 0x5a, 1000); };
  const std::byte* const begin = write_put(slot.data() + 1024, key, 1000, fill);
  EXPECT_EQ(begin - slot.data(), 1024 - 1018);
  EXPECT_EQ(length_before(slot.data() + 1024), 1000);
  EXPECT_EQ(std::memcmp(slot.data() + 1008, &key, 16), 0);
  EXPECT_EQ(std::to_integer<int>(slot[1024 - 19]), 0x5a);  // the last byte of the value

  const KeyHash other{.low = 7, .high = 8};
  EXPECT_EQ(slot.data() + 1024 - write_get(slot.data() + 1024, other), 16);
  EXPECT_EQ(std::memcmp(slot.data() + 1008, &other, 16), 0);
  EXPECT_EQ(length_before(slot.data() + 1024), 0);
}

TEST(Tag, NamesTheNearestNumber) {
  constexpr std::uint64_t kFar = 5 * std::uint64_t{kTagNumbers};
  EXPECT_EQ(tagged(tag_of(11, kFar + 3)), 11u);
  EXPECT_EQ(tagged_number(tag_of(11, kFar + 3), kFar + 3), kFar + 3);
  EXPECT_EQ(tagged_number(tag_of(11, kFar - 1), kFar + 2), kFar - 1);
  EXPECT_EQ(tagged_number(tag_of(11, kFar + 2), kFar - 1), kFar + 2);
}

}  // namespace
}  // namespace verbscope::herd
