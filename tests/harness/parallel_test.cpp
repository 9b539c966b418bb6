// Independent tasks on a few threads.
#include "harness/sweep/parallel.hpp"

#include <atomic>
#include <mutex>
#include <set>

#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

TEST(Parallel, RunsEachTaskOnce) {
  for (const std::size_t jobs : {1u, 3u, 50u}) {
    std::mutex mutex;
    std::multiset<std::size_t> seen;
    run_parallel(20, jobs, [&](std::size_t i) {
      const std::lock_guard lock(mutex);
      seen.insert(i);
    });
    EXPECT_EQ(seen.size(), 20u);
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 20u);
  }
}

TEST(Parallel, OneJobRunsTasksInOrder) {
  std::vector<std::size_t> seen;
  run_parallel(5, 1, [&](std::size_t i) { seen.push_back(i); });
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(Parallel, NeverRunsMoreThanJobsAtOnce) {
  std::atomic<int> running{0}, most{0};
  run_parallel(50, 2, [&](std::size_t) {
    const int now = ++running;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    --running;
  });
  EXPECT_LE(most, 2);
}

TEST(Parallel, RethrowsTheFirstExceptionAndStopsTheRest) {
  int started = 0;
  EXPECT_EQ(error_of([&] {
              run_parallel(10, 1, [&](std::size_t i) {
                ++started;
                if (i == 3) fail("task {}", i);
              });
            }),
            "task 3");
  EXPECT_EQ(started, 4);
}

TEST(Parallel, AcceptsZeroTasks) {
  run_parallel(0, 4, [](std::size_t) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace verbscope
