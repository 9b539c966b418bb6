// Pinned threads, CPU time.
#include "machine/threads.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>

#include "tests/verbs/mock_provider.hpp"

namespace verbscope {
namespace {

// The affinity mask from the kernel, without the library.
std::vector<int> affinity_now() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &mask)) cores.push_back(core);
  }
  return cores;
}

TEST(Cores, AllowedCoresMatchTheKernel) {
  EXPECT_EQ(allowed_cores(), affinity_now());
}

TEST(Cores, ListsUseRanges) {
  EXPECT_EQ(core_list({0}), "0");
  EXPECT_EQ(core_list({0, 1}), "0-1");
  EXPECT_EQ(core_list({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(core_list({}), "");
}

TEST(Cores, RejectsACoreThatIsNotAllowed) {
  const std::string list = core_list(allowed_cores());
  EXPECT_EQ(error_of([] { check_core(100000); }), fmt::format("core 100000: this process may run on cores {}", list));
  EXPECT_EQ(error_of([] { PinnedThread(-1, [](const std::stop_token&) {}); }),
            fmt::format("core -1: this process may run on cores {}", list));
}

TEST(ScopedAffinity, RestrictsAndRestoresTheAffinity) {
  const std::vector<int> before = affinity_now();
  {
    const ScopedAffinity pinned({before.back()});
    EXPECT_EQ(affinity_now(), std::vector{before.back()});
  }
  EXPECT_EQ(affinity_now(), before);
  const ScopedAffinity unchanged({});
  EXPECT_EQ(affinity_now(), before);
}

TEST(PinnedThread, RunsOnItsCoreOnly) {
  for (const int core : allowed_cores()) {
    std::vector<int> affinity;
    int running_on = -1;
    PinnedThread thread(core, [&](const std::stop_token&) {
      affinity = affinity_now();
      running_on = sched_getcpu();
    });
    thread.join();
    EXPECT_EQ(affinity, std::vector{core});
    EXPECT_EQ(running_on, core);
    EXPECT_EQ(thread.core(), core);
  }
}

TEST(PinnedThread, DoesNotPinTheCaller) {
  const auto before = affinity_now();
  PinnedThread(before.front(), [](const std::stop_token&) {}).join();
  EXPECT_EQ(affinity_now(), before);
}

TEST(PinnedThread, JoinRethrowsTheExceptionOfTheBody) {
  PinnedThread thread(allowed_cores().front(), [](const std::stop_token&) { fail("lost 3 messages"); });
  EXPECT_EQ(error_of([&] { thread.join(); }), "lost 3 messages");
}

TEST(PinnedThread, DestructorRequestsAStop) {
  std::atomic<bool> stopped = false;
  {
    const PinnedThread thread(allowed_cores().front(), [&](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
      stopped = true;
    });
  }
  EXPECT_TRUE(stopped);
}

TEST(PinnedThread, CanBeMovedWhileItRuns) {
  std::atomic<int> ran = 0;
  std::vector<PinnedThread> threads;
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back(allowed_cores().front(), [&](const std::stop_token&) { ++ran; });
  }
  for (PinnedThread& thread : threads) thread.join();
  EXPECT_EQ(ran, 5);
}

TEST(CpuUsage, GrowsWithTheWorkOfAThread) {
  const CpuSeconds before = process_cpu();
  const auto start = std::clock();
  while (std::clock() - start < CLOCKS_PER_SEC / 20) {
  }
  const CpuSeconds used = process_cpu() - before;
  EXPECT_GE(used.user_s + used.system_s, 0.04);  // std::clock counted 0.05 s, getrusage has its own rounding
  EXPECT_GE(used.user_s, 0);
  EXPECT_GE(used.system_s, 0);
}

}  // namespace
}  // namespace verbscope
