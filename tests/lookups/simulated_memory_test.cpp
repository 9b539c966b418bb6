// Look-ups on a simulated host wait for memory as long as counted by hand.
#include <gtest/gtest.h>

#include <vector>

#include "lookups/chain.hpp"
#include "lookups/interleave.hpp"
#include "nic_sim/host/core.hpp"
#include "nic_sim/host/sim_node.hpp"
#include "tests/lookups/simulated_time.hpp"

namespace verbscope::lookups {
namespace {

constexpr Picos kDram = Nanos(90);

Picos time_of(const std::function<void(SimNode&)>& body) {
  return test::simulated_time(body, kDram);
}

std::vector<char> lines(std::size_t count) {
  return std::vector<char>(64 * count);
}

TEST(SimulatedMemory, PrefetchedLoadWaitsForTheRestOfTheLatency) {
  const std::vector<char> memory = lines(4);
  EXPECT_EQ(time_of([&](SimNode& node) { node.load(memory.data()); }), kDram);
  EXPECT_EQ(time_of([&](SimNode& node) {
              node.prefetch(memory.data());
              node.compute(Nanos(60));
              node.load(memory.data());
            }),
            kDram);
  EXPECT_EQ(time_of([&](SimNode& node) {
              node.prefetch(memory.data());
              node.compute(Nanos(200));
              node.load(memory.data());
            }),
            Nanos(200));
}

TEST(SimulatedMemory, EleventhMissWaits) {
  const std::vector<char> memory = lines(12);
  const auto prefetch = [&](std::size_t count) {
    return [&memory, count](SimNode& node) {
      for (std::size_t i = 0; i < count; ++i) node.prefetch(&memory[64 * i]);
    };
  };
  EXPECT_EQ(time_of(prefetch(10)), Nanos(0));
  EXPECT_EQ(time_of(prefetch(11)), kDram);
  EXPECT_EQ(time_of([&](SimNode& node) {
              prefetch(10)(node);
              node.load(&memory[64 * 11]);  // waits for a free miss, then for memory
            }),
            2 * kDram);
}

TEST(SimulatedMemory, RepeatedPrefetchIsOneMiss) {
  const std::vector<char> memory = lines(2);
  EXPECT_EQ(time_of([&](SimNode& node) {
              for (int i = 0; i < 100; ++i) node.prefetch(memory.data());
              node.load(memory.data());
            }),
            kDram);
}

// 20 chains of 5 steps take 100 latencies one by one. With ten at a time, in a group or interleaved, they take a tenth
// of that. With a batch of one nothing overlaps.
TEST(SimulatedMemory, SpeedUpEqualsTheOverlappingMisses) {
  const Chain chain(Bytes(1 << 20), 5, 3, PageSize::kb4);
  std::vector<std::uint32_t> starts, ends(20);
  for (std::uint32_t i = 0; i < 20; ++i) starts.push_back(i * 1000);
  const auto took = [&](Variant variant, std::size_t batch) {
    return time_of([&](SimNode& node) { look_up(node, chain, variant, batch, starts, ends.data()); });
  };
  EXPECT_EQ(took(Variant::baseline, 1), 100 * kDram);
  EXPECT_EQ(took(Variant::group, 1), 100 * kDram);
  EXPECT_EQ(took(Variant::interleaved, 1), 100 * kDram);
  EXPECT_EQ(took(Variant::group, 10), 10 * kDram);
  EXPECT_EQ(took(Variant::interleaved, 10), 10 * kDram);
  EXPECT_EQ(took(Variant::interleaved, 5), 20 * kDram);
  EXPECT_EQ(took(Variant::interleaved, 20), 10 * kDram);  // more lanes than misses gain nothing
}

}  // namespace
}  // namespace verbscope::lookups
