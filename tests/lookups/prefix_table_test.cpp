// Longest-prefix match against a search through all prefixes.
#include "lookups/prefix_table.hpp"

#include <algorithm>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "tests/lookups/variants.hpp"

namespace verbscope::lookups {
namespace {

template <std::size_t B>
bool covers(const Prefix<B>& prefix, const Address<B>& address) {
  for (std::size_t bit = 0; bit < prefix.bits; ++bit) {
    const auto mask = static_cast<std::uint8_t>(0x80u >> (bit % 8));
    if (((prefix.address[bit / 8] ^ address[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

template <std::size_t B>
std::uint32_t search(const std::vector<Prefix<B>>& prefixes, const Address<B>& address, std::uint32_t none) {
  std::uint32_t hop = none;
  int best = -1;
  for (const Prefix<B>& prefix : prefixes) {
    if (int{prefix.bits} < best || !covers(prefix, address)) continue;  // of equals the last
    best = prefix.bits;
    hop = prefix.next_hop;
  }
  return hop;
}

// Addresses whose first bytes collide often, and whose others have few values.
template <std::size_t B>
Address<B> address_of(std::uint64_t seed) {
  Address<B> address{};
  for (std::size_t i = 0; i < B; ++i) address[i] = static_cast<std::uint8_t>(mix(seed * B + i) % (i < 3 ? 2 : 3) * 85);
  return address;
}

template <class Table, std::size_t B>
void compare_with_search(std::uint8_t shortest) {
  Table table(3000, PageSize::kb4);
  std::vector<Prefix<B>> prefixes;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto bits = static_cast<std::uint8_t>(shortest + mix(i) % (8 * B + 1 - shortest));
    prefixes.push_back({address_of<B>(i), bits, i % 100});
  }
  std::ranges::stable_sort(prefixes, {}, &Prefix<B>::bits);
  for (const Prefix<B>& prefix : prefixes) ASSERT_TRUE(table.add(prefix));
  std::vector<Address<B>> keys;
  std::vector<std::uint32_t> expected;
  for (std::uint64_t i = 0; i < 333; ++i) {
    keys.push_back(i % 2 == 0 ? address_of<B>(i) : prefixes[i % 200].address);
    expected.push_back(search(prefixes, keys.back(), Table::kNoHop));
  }
  test::expect_all_variants_return(table, keys, expected);
}

TEST(PrefixTable, MatchesALinearSearchForIpv4) {
  compare_with_search<Lpm4, 4>(1);
  compare_with_search<Lpm4, 4>(20);
}

TEST(PrefixTable, MatchesALinearSearchForIpv6) {
  compare_with_search<Lpm6, 16>(1);
  compare_with_search<Lpm6, 16>(48);
}

TEST(PrefixTable, FindsNoHopWithoutPrefixes) {
  const Lpm4 table(1, PageSize::kb4);
  test::expect_all_variants_return(table, std::vector<Address<4>>{{1, 2, 3, 4}, {255, 255, 255, 255}},
                                   {Lpm4::kNoHop, Lpm4::kNoHop});
}

// 24 bits in the first table, 8 in each group: a prefix of 25 to 32 bits is two accesses, one of 64 bits six.
TEST(PrefixTable, NeedsOneAccessPerEightBitsAfter24) {
  Lpm4 four(1, PageSize::kb4);
  ASSERT_TRUE(four.add({{10, 0, 0, 0}, 24, 1}));
  ASSERT_TRUE(four.add({{10, 0, 1, 0}, 25, 2}));
  EXPECT_EQ(four.accesses({10, 0, 0, 9}), 1u);
  EXPECT_EQ(four.accesses({10, 0, 1, 9}), 2u);
  Lpm6 six(5, PageSize::kb4);
  ASSERT_TRUE(six.add({{1, 2, 3, 4, 5, 6, 7, 8}, 64, 1}));
  EXPECT_EQ(six.accesses({1, 2, 3, 4, 5, 6, 7, 8, 9}), 6u);
  EXPECT_EQ(six.accesses({1, 2, 3, 5}), 2u);
}

TEST(PrefixTable, RejectsAPrefixWithoutFreeGroups) {
  Lpm6 table(4, PageSize::kb4);
  EXPECT_FALSE(table.add({{1}, 64, 1}));  // five groups
  EXPECT_TRUE(table.add({{1}, 56, 1}));
  EXPECT_FALSE(table.add({{2}, 56, 1}));
  EXPECT_TRUE(table.add({{1}, 56, 2}));  // needs none
  EXPECT_EQ(table.groups_used(), 4u);
}

TEST(PrefixTable, RejectsAShorterPrefixAfterALongerOne) {
  Lpm4 table(1, PageSize::kb4);
  ASSERT_TRUE(table.add({{1}, 20, 1}));
  EXPECT_THROW(table.add({{1}, 19, 1}), Error);
  EXPECT_THROW(table.add({{1}, 33, 1}), Error);
  EXPECT_THROW(table.add({{1}, 24, Lpm4::kHops}), Error);
}

}  // namespace
}  // namespace verbscope::lookups
