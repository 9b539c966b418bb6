#include "common/bell.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

namespace verbscope {
namespace {

bool wakes(const Bell& bell, int limit_ms) {
  pollfd entry{bell.fd(), POLLIN, 0};
  return ::poll(&entry, 1, limit_ms) == 1;
}

TEST(Bell, WakesASleeperWhoSeesWhatWasWrittenBefore) {
  const Bell bell;
  std::atomic<int> written = 0;
  std::thread ringer([&] {
    written.store(7, std::memory_order_relaxed);
    bell.ring();
  });
  ASSERT_TRUE(wakes(bell, 20000));
  bell.silence();
  EXPECT_EQ(written.load(std::memory_order_relaxed), 7);
  ringer.join();
}

TEST(Bell, RingsUntilItIsSilenced) {
  const Bell bell;
  EXPECT_FALSE(wakes(bell, 0));
  bell.ring();
  bell.ring();
  EXPECT_TRUE(wakes(bell, 0));
  EXPECT_TRUE(wakes(bell, 0));
  bell.silence();
  EXPECT_FALSE(wakes(bell, 0));
  bell.silence();  // of a silent bell: does not wait
  EXPECT_FALSE(wakes(bell, 0));
}

}  // namespace
}  // namespace verbscope
