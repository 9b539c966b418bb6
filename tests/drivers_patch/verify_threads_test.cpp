// --verify while threads post to one QP at the same time: overlapping posts are skipped and never reported as a
// difference.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/drivers_patch/fake_direct_verbs.hpp"

namespace verbscope::driver {
namespace {

TEST(VerifyThreads, ChecksAQpOfSeveralThreads) {
  constexpr std::uint64_t kEach = 2000;
  constexpr std::uint64_t kPosters = 4;
  for (const NicFamily family : {NicFamily::mlx5, NicFamily::mlx4}) {
    VerifiedRig rig(family);
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < kPosters; ++i) {
      threads.emplace_back([&rig, i] {
        Send send(i % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, 64, i == 0 ? unsigned{IBV_SEND_SIGNALED} : 0u);
        for (std::uint64_t post = 0; post < kEach; ++post) EXPECT_EQ(rig.post(send.wr), 0);
      });
    }
    for (std::thread& each : threads) each.join();
    const CheckSummary found = rig.found();
    EXPECT_EQ(kinds_of(found), (std::map<std::size_t, std::uint64_t>{}));
    EXPECT_EQ(found.wqes + found.left_out, kPosters * kEach);
    Send send;
    EXPECT_EQ(rig.post(send.wr), 0);
    EXPECT_EQ(rig.found().wqes, found.wqes + 1);
  }
}

}  // namespace
}  // namespace verbscope::driver
