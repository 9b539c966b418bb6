// A process forks while its threads post, and make what they count for the first time.
#include "drivers_patch/forks.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "drivers_patch/arena.hpp"
#include "tests/common/temp_dir.hpp"
#include "tests/drivers_patch/fake_device.hpp"
#include "tests/drivers_patch/traced_rig.hpp"

namespace verbscope::driver {
namespace {

// Runs `body` in a child, which is killed when it hangs. Whether it yielded true.
template <class Body>
bool child_finds(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

void post_to(ibv_qp& qp, int times) {
  Send send(IBV_WR_SEND, 64, IBV_SEND_SIGNALED);
  ibv_send_wr* bad = nullptr;
  for (int i = 0; i < times; ++i) {
    if (ibv_post_send(&qp, &send.wr, &bad) != 0) std::abort();
  }
}

std::uint64_t requests_of(std::uint32_t context) {
  std::uint64_t requests = 0;
  for (const QpSummary& qp : summarize_process().qps) requests += qp.context == context ? qp.sums.requests() : 0;
  return requests;
}

TEST(DriverForks, AChildCountsFromZeroAndFindsNoLockHeld) {
  constexpr int kForks = 20;
  FakeDevice device;
  counted_context(device.context);
  const std::uint32_t context = summarize_process().contexts.back().number;
  ibv_qp shared = device.qp(1);
  attach_qp(shared, nullptr, {}, false, 1024);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> posted{0};
  std::thread poster([&] {
    for (std::uint32_t number = 2; !done; ++number) {
      ibv_qp own = device.qp(number);
      attach_qp(own, nullptr, {}, false, 1024);
      post_to(own, 3);
      post_to(shared, 2);
      posted += 5;
      detach_qp(own);
    }
  });
  for (std::uint64_t i = 1; i <= kForks; ++i) {
    while (posted < 100 * i) std::this_thread::yield();
    hold_for_fork();
    EXPECT_TRUE(child_finds([&] {
      go_on_in_child("");
      FakeDevice fresh;
      counted_context(fresh.context);
      const std::uint32_t own_context = summarize_process().contexts.back().number;
      ibv_qp own = fresh.qp(7);
      attach_qp(own, nullptr, {}, false, 1024);
      post_to(own, 11);
      post_to(shared, 4);
      const bool right = requests_of(own_context) == 11 && requests_of(context) == 4;
      detach_qp(shared);
      detach_context(fresh.context);
      return right;
    }));
    go_on_in_parent();
  }
  done = true;
  poster.join();
  EXPECT_EQ(requests_of(context), posted);
  detach_context(device.context);
}

// A record of a thread's counts that says who it is everywhere: what a copy of half of it would not.
QpCounts* made_counts(Arena& arena, std::uint32_t number) {
  QpCounts* const counts = arena.make<QpCounts>();
  if (counts == nullptr) return nullptr;
  counts->thread = counts->qp_record = number;
  counts->reads_outstanding = number;
  Arena::publish(*counts);
  return counts;
}

// The counts that a child found for a QP are whole, of the time before the fork, and end.
bool is_chain(const Arena& arena, const QpRecord& qp, std::uint64_t used) {
  const auto* const base = reinterpret_cast<const std::byte*>(&arena.header());
  std::uint64_t length = 0;
  for (const QpCounts* counts = qp.counts; counts != nullptr; counts = counts->next) {
    const auto at = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(counts) - base);
    if (at >= used || counts->head.kind != RecordKind::qp_counts || counts->thread != counts->qp_record) return false;
    if (++length > used / sizeof(QpCounts)) return false;  // it goes round
  }
  return true;
}

TEST(DriverForks, RecordsThatAreMadeMeanwhileAreTheParents) {
  const TempDir folder;
  Arena arena;
  ASSERT_EQ(arena.open((folder / "parent").c_str(), std::uint64_t{1} << 30, usual_facts(NicFamily::mlx5, false)), 0);
  QpRecord* const qp = arena.make<QpRecord>();
  Arena::publish(*qp);
  std::atomic<bool> done{false};
  std::atomic<std::uint32_t> made{0};
  std::thread maker([&] {
    while (!done) {
      QpCounts* const counts = made_counts(arena, made + 1);
      if (counts == nullptr) break;
      counts->next = qp->counts.load();
      qp->counts = counts;
      ++made;
    }
  });
  for (std::uint32_t i = 1; i <= 50; ++i) {
    while (made < i * 100) std::this_thread::yield();
    const std::uint64_t used = arena.used();
    EXPECT_TRUE(child_finds([&] {
      if (arena.divide((folder / "child").c_str(), used) != 0 || arena.header().used != used) return false;
      if (!is_chain(arena, *qp, used)) return false;
      QpCounts* const own = made_counts(arena, 1);
      own->next = qp->counts;
      qp->counts = own;
      return is_chain(arena, *qp, arena.used());
    }));
    std::filesystem::remove(folder / "child");
  }
  done = true;
  maker.join();
  arena.close();
}

}  // namespace
}  // namespace verbscope::driver
