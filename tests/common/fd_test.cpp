#include "common/fd.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

namespace verbscope {
namespace {

bool wakes(const EventFd& wake, int limit_ms) {
  pollfd entry{wake.fd(), POLLIN, 0};
  return ::poll(&entry, 1, limit_ms) == 1;
}

TEST(EventFd, WokenThreadSeesEarlierWrites) {
  const EventFd wake;
  std::atomic<int> written = 0;
  std::thread ringer([&] {
    written.store(7, std::memory_order_relaxed);
    wake.signal();
  });
  ASSERT_TRUE(wakes(wake, 20000));
  wake.clear();
  EXPECT_EQ(written.load(std::memory_order_relaxed), 7);
  ringer.join();
}

TEST(EventFd, IsReadableUntilCleared) {
  const EventFd wake;
  EXPECT_FALSE(wakes(wake, 0));
  wake.signal();
  wake.signal();
  EXPECT_TRUE(wakes(wake, 0));
  EXPECT_TRUE(wakes(wake, 0));
  wake.clear();
  EXPECT_FALSE(wakes(wake, 0));
  wake.clear();  // of a silent wake: does not wait
  EXPECT_FALSE(wakes(wake, 0));
}

}  // namespace
}  // namespace verbscope
