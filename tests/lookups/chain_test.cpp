// Pointer chains: every variant ends at the place of a plain walk.
#include "lookups/chain.hpp"

#include "common/error.hpp"
#include "tests/lookups/variants.hpp"

namespace verbscope::lookups {
namespace {

std::uint32_t walk(const Chain& chain, std::uint32_t at) {
  for (std::uint32_t step = 0; step < chain.depth(); ++step) {
    at = static_cast<std::uint32_t>((std::uint64_t{*chain.place(at)} + step) % chain.places());
  }
  return at;
}

TEST(Chain, MatchesAPlainWalk) {
  for (const std::uint32_t depth : {1u, 2u, 17u}) {
    const Chain chain(Bytes(4096), depth, 7, PageSize::kb4);
    ASSERT_EQ(chain.places(), 1024u);
    std::vector<std::uint32_t> starts, ends;
    for (std::uint32_t i = 0; i < 75; ++i) {
      starts.push_back(i * 13 % 1024);
      ends.push_back(walk(chain, starts.back()));
    }
    test::expect_all_variants_return(chain, starts, ends);
  }
}

TEST(Chain, RejectsInvalidSizesAndDepths) {
  EXPECT_THROW(Chain(Bytes(4096 + 64), 1, 1, PageSize::kb4), Error);
  EXPECT_THROW(Chain(Bytes(4096), 0, 1, PageSize::kb4), Error);
}

}  // namespace
}  // namespace verbscope::lookups
