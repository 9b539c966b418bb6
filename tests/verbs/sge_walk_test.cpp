// Walks over scatter/gather lists.
#include "verbs/sge_walk.hpp"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace verbscope::test {
namespace {

using Piece = std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>;  // address, bytes, lkey

struct Walk {
  std::vector<Piece> pieces;
  bool all;
};

Walk walk(const std::vector<ibv_sge>& sges, std::uint64_t begin, std::uint64_t bytes) {
  Walk seen{};
  seen.all = walk_sges(sges, begin, bytes, [&seen](std::uint64_t address, std::uint64_t piece, std::uint32_t lkey) {
    seen.pieces.emplace_back(address, piece, lkey);
    return true;
  });
  return seen;
}

// Two elements with bytes, and empty elements before, between and after them.
const std::vector<ibv_sge> kList{{100, 0, 1}, {200, 10, 2}, {300, 0, 3}, {400, 20, 4}, {500, 0, 5}};

TEST(SgeBytes, SumsTheElements) {
  EXPECT_EQ(sge_bytes({}), 0u);
  EXPECT_EQ(sge_bytes(kList), 30u);
  EXPECT_EQ(sge_bytes(std::vector<ibv_sge>{{0, ~0u, 0}, {0, ~0u, 0}}), 2 * std::uint64_t{~0u});
}

TEST(WalkSges, FindsNoByteInAnEmptyList) {
  EXPECT_TRUE(walk({}, 0, 0).all);
  EXPECT_FALSE(walk({}, 0, 1).all);
  EXPECT_TRUE(walk({}, 0, 1).pieces.empty());
}

TEST(WalkSges, SkipsEmptyElements) {
  const Walk seen = walk(kList, 0, 30);
  EXPECT_TRUE(seen.all);
  EXPECT_EQ(seen.pieces, (std::vector<Piece>{{200, 10, 2}, {400, 20, 4}}));
}

TEST(WalkSges, BeginsAndEndsInsideAnElement) {
  EXPECT_EQ(walk(kList, 3, 4).pieces, (std::vector<Piece>{{203, 4, 2}}));
  EXPECT_EQ(walk(kList, 3, 10).pieces, (std::vector<Piece>{{203, 7, 2}, {400, 3, 4}}));
  EXPECT_EQ(walk(kList, 15, 15).pieces, (std::vector<Piece>{{405, 15, 4}}));
  EXPECT_TRUE(walk(kList, 15, 15).all);
}

TEST(WalkSges, BeginsAndEndsWhereElementsMeet) {
  EXPECT_EQ(walk(kList, 0, 10).pieces, (std::vector<Piece>{{200, 10, 2}}));
  EXPECT_EQ(walk(kList, 10, 20).pieces, (std::vector<Piece>{{400, 20, 4}}));
  EXPECT_TRUE(walk(kList, 30, 0).all);
  EXPECT_TRUE(walk(kList, 30, 0).pieces.empty());
}

TEST(WalkSges, ReturnsFalseForATooShortList) {
  const Walk seen = walk(kList, 25, 6);
  EXPECT_FALSE(seen.all);
  EXPECT_EQ(seen.pieces, (std::vector<Piece>{{415, 5, 4}}));
  EXPECT_FALSE(walk(kList, 31, 1).all);
}

TEST(WalkSges, StopsWhenTheVisitorReturnsFalse) {
  int visits = 0;
  EXPECT_FALSE(walk_sges(kList, 0, 30, [&visits](auto...) {
    ++visits;
    return false;
  }));
  EXPECT_EQ(visits, 1);
}

}  // namespace
}  // namespace verbscope::test
