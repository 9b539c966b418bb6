// The closed form of look-ups: numbers counted by hand, and the published measurements of G-Opt's code.
#include "pcie_model/memory_walk.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace verbscope {
namespace {

// 100 ns, ten at once, 3 ns a switch: k = 2, 20 ns of computation.
TEST(MemoryWalk, MatchesHandCalculation) {
  const HostMemory host{.latency_ns = 100, .parallel_ns = 10, .switch_ns = 3, .stage_ns = 2, .window = 0};
  const MemoryWalk walk{.accesses = 2, .compute_ns = 20};
  EXPECT_DOUBLE_EQ(host.at_once(), 10);
  EXPECT_DOUBLE_EQ(predict_walk(host, walk, 16).baseline_ns, 220);
  EXPECT_DOUBLE_EQ(predict_walk(host, walk, 16).interleaved_ns, 26);  // 2 * 3 + 20, more than 2 * 10
  EXPECT_EQ(predict_walk(host, walk, 16).binding, "cpu");
  EXPECT_DOUBLE_EQ(predict_walk(host, walk, 16).group_ns, 24);
  EXPECT_DOUBLE_EQ(predict_walk(host, walk, 4).interleaved_ns, 50);  // 200 / 4
  EXPECT_EQ(predict_walk(host, walk, 4).binding, "latency");
  EXPECT_DOUBLE_EQ(predict_walk(host, {.accesses = 2, .compute_ns = 1}, 16).interleaved_ns, 20);
  EXPECT_EQ(predict_walk(host, {.accesses = 2, .compute_ns = 1}, 16).binding, "memory");
}

TEST(MemoryWalk, MoreLookUpsThanMissesGainNothing) {
  const HostMemory host{.latency_ns = 100, .parallel_ns = 10, .switch_ns = 1};
  const MemoryWalk walk{.accesses = 5, .compute_ns = 1};
  EXPECT_DOUBLE_EQ(predict_walk(host, walk, 10).interleaved_ns, predict_walk(host, walk, 32).interleaved_ns);
}

TEST(MemoryWalk, InTheCacheTheBaselineWins) {
  const HostMemory cache{.latency_ns = 2, .parallel_ns = 1, .switch_ns = 4, .stage_ns = 2};
  EXPECT_EQ(break_even_accesses(cache, {.compute_ns = 5}, 0, 16), 0u);
}

// Pointer chasing on an E5-2680 (github.com/efficient/gopt, data of the benchmark): nanoseconds of an access of the
// baseline against the depth. 90 ns at most, about ten misses (NSDI 2015, section 2.1), 168 instructions in flight
// (Sandy Bridge); a look-up has about 10 instructions and 5 for each access. Within a quarter.
TEST(MemoryWalk, OutOfOrderExecutionOverlapsShortLookUpsAsPublished) {
  const HostMemory sandy_bridge{.latency_ns = 90, .parallel_ns = 9, .window = 168};
  const struct { double depth, published_ns; } rows[] = {{1, 11}, {4, 14}, {16, 34}, {80, 77}, {160, 85}};
  for (const auto& row : rows) {
    const MemoryWalk walk{.accesses = row.depth, .instructions = 10 + 5 * row.depth};
    EXPECT_NEAR(predict_walk(sandy_bridge, walk, 8).baseline_ns / row.depth, row.published_ns, row.published_ns / 4)
        << row.depth;
  }
}

TEST(MemoryWalk, RefusesAHostWithoutLatency) {
  EXPECT_THROW(predict_walk({}, {.accesses = 1}, 1), Error);
}

}  // namespace
}  // namespace verbscope
