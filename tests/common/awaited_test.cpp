#include "common/awaited.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace verbscope {
namespace {

TEST(Awaited, WaitReturnsAtOnceIfTheValueDiffers) {
  Awaited<int> value(1);
  value = 2;
  value.wait(1);
  EXPECT_EQ(value.load(), 2);
}

// Each thread waits for its neighbour's count and then raises its own: who is not woken stops them all.
TEST(Awaited, WakesASleepingThread) {
  constexpr int kRounds = 5000;
  constexpr std::size_t kThreads = 3;
  std::array<Awaited<int>, kThreads> counts;
  const auto follow = [&](std::size_t self) {
    for (int round = 0; round < kRounds; ++round) {
      if (self != 0) counts[self - 1].wait(round);
      counts[self] = round + 1;
      counts[kThreads - 1].wait(round);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(follow, i);
  }
  for (const Awaited<int>& count : counts) EXPECT_EQ(count.load(), kRounds);
}

TEST(Awaited, WakesAllSleepingThreads) {
  Awaited<bool> begun;
  Awaited<int> woken;
  std::atomic<int> count = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        begun.wait(false);
        if (++count == 4) woken = 4;
      });
    }
    begun = true;
    woken.wait(0);
  }
  EXPECT_EQ(count, 4);
}

}  // namespace
}  // namespace verbscope
