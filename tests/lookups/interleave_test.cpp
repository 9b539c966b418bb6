// The order in which lanes run, and that they allocate nothing.
#include "lookups/interleave.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lookups/chain.hpp"
#include "tests/lookups/variants.hpp"
#include "tests/verbs/count_allocations.hpp"

namespace verbscope::lookups {

// A node that records the stack depth of its callers.
struct StackNode : HostNode {
  void prefetch(const void*) {
    const char here = 0;
    deepest = std::min(deepest, reinterpret_cast<std::uintptr_t>(&here));
    highest = std::max(highest, reinterpret_cast<std::uintptr_t>(&here));
  }
  std::uintptr_t deepest = UINTPTR_MAX, highest = 0;
};

namespace {

using testing::ElementsAre;

// A node that records which lines were prefetched and read.
struct RecordingNode : HostNode {
  void prefetch(const void* place) { notes.push_back("prefetch " + name(place)); }
  void load(const void* place) { notes.push_back("read " + name(place)); }
  std::string name(const void* place) const { return std::to_string(static_cast<const char*>(place) - lines); }

  const char* lines;
  std::vector<std::string> notes{};
};

// A structure whose look-up of key n reads line n, n times.
struct Repeats {
  using Key = int;
  using Result = int;
  const char* lines;

  static Lane find_lane(FrameSlot&, RecordingNode& node, const Repeats& self, Batch<Key, Result>& batch) {
    while (batch.left()) {
      const std::size_t mine = batch.take();
      const int key = batch.keys[mine];
      for (int i = 0; i < key; ++i) co_await Fetched{node, static_cast<const void*>(self.lines + key)};
      batch.results[mine] = 10 * key;
    }
  }
};

std::vector<std::string> notes_of(std::size_t lanes, const std::vector<int>& keys, std::vector<int>& results) {
  const char lines[8] = {};
  RecordingNode node{{}, lines};
  const Repeats structure{lines};
  results.assign(keys.size(), -1);
  Batch<int, int> batch{keys, results.data()};
  interleave<4>(lanes, [&](FrameSlot& slot) { return Repeats::find_lane(slot, node, structure, batch); });
  return node.notes;
}

TEST(Interleave, OneLaneContinuesAtOnce) {
  std::vector<int> results;
  EXPECT_THAT(notes_of(1, {2, 1}, results),
              ElementsAre("prefetch 2", "read 2", "prefetch 2", "read 2", "prefetch 1", "read 1"));
  EXPECT_THAT(results, ElementsAre(20, 10));
}

TEST(Interleave, PrefetchesALinePerLaneBeforeTheFirstRead) {
  std::vector<int> results;
  EXPECT_THAT(notes_of(3, {1, 2, 1}, results), ElementsAre("prefetch 1", "prefetch 2", "prefetch 1", "read 1", "read 2",
                                                           "prefetch 2", "read 1", "read 2"));
  EXPECT_THAT(results, ElementsAre(10, 20, 10));
}

TEST(Interleave, FinishedLaneTakesTheNextKey) {
  std::vector<int> results;
  EXPECT_THAT(notes_of(2, {3, 1, 1}, results), ElementsAre("prefetch 3", "prefetch 1", "read 3", "prefetch 3", "read 1",
                                                           "prefetch 1", "read 3", "prefetch 3", "read 1", "read 3"));
  EXPECT_THAT(results, ElementsAre(30, 10, 10));
}

TEST(Interleave, LookUpsWithoutAccessesEndAtOnce) {
  std::vector<int> results;
  EXPECT_THAT(notes_of(4, {0, 0, 0, 0, 0}, results), ElementsAre());
  EXPECT_THAT(results, ElementsAre(0, 0, 0, 0, 0));
}

TEST(Interleave, StackDoesNotGrowWithTheSteps) {
  const Chain chain(Bytes(4096), 500, 1, PageSize::kb4);
  const std::vector<std::uint32_t> starts(100, 7);
  std::vector<std::uint32_t> ends(100);
  StackNode node;
  look_up(node, chain, Variant::interleaved, 8, starts, ends.data());
  // 8 lanes with a few calls each, not 50000 steps.
  EXPECT_LT(node.highest - node.deepest, 8u * 8192);
}

#ifdef VERBSCOPE_COUNT_ALLOCATIONS
TEST(Interleave, AllocatesNothing) {
  const Chain chain(Bytes(4096), 5, 1, PageSize::kb4);
  std::vector<std::uint32_t> starts(100), ends(100);
  for (std::uint32_t i = 0; i < 100; ++i) starts[i] = i;
  HostNode node;
  const std::size_t before = allocations_of_this_thread();
  for (const Variant variant : kVariants) look_up(node, chain, variant, kMaxBatch, starts, ends.data());
  EXPECT_EQ(allocations_of_this_thread() - before, 0u);
}
#endif

struct LargeFrame {
  static Lane find_lane(FrameSlot&, HostNode& node, std::vector<int>& places) {
    std::array<int, 1000> values{};
    for (std::size_t i = 0; i < values.size(); ++i) {
      co_await Fetched{node, static_cast<const void*>(&places)};
      values[i] = places[0];
    }
    places[0] = values[7];
  }
};

TEST(Interleave, RejectsAFrameThatDoesNotFit) {
  HostNode node;
  std::vector<int> places{1};
  const auto make = [&](FrameSlot& slot) { return LargeFrame::find_lane(slot, node, places); };
  EXPECT_THROW(interleave<2>(2, make), Error);
}

}  // namespace
}  // namespace verbscope::lookups
