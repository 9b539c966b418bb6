// Forks while threads post and create their counts.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "drivers_patch/arena.hpp"
#include "drivers_patch/process.hpp"
#include "tests/common/temp_dir.hpp"
#include "tests/drivers_patch/fake_device.hpp"
#include "tests/drivers_patch/traced_rig.hpp"

namespace verbscope::driver {
namespace {

constexpr int kForks = 10;

// Runs `body` in a child, which is killed if it hangs, and `meanwhile` here. Returns the result of the body.
template <class Body>
bool child_finds(
    Body&& body, void (*meanwhile)() = [] {}) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(body() ? 0 : 1);
  }
  meanwhile();
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

// Lets a thread do this many steps around a fork, some before it and some during it.
class Pace {
 public:
  static constexpr std::uint64_t kSteps = 100;

  // Called by the thread: false if it must end.
  bool step() {
    while (taken_ >= allowed_ && !done_) std::this_thread::yield();
    ++taken_;
    return !done_;
  }
  void before_fork() {
    allowed_ += kSteps;
    while (taken_ + kSteps / 2 < allowed_) std::this_thread::yield();
  }
  void end() { done_ = true; }

 private:
  std::atomic<std::uint64_t> allowed_{0}, taken_{0};
  std::atomic<bool> done_{false};
};

std::uint64_t requests_of(std::uint32_t context) {
  std::uint64_t requests = 0;
  for (const QpSummary& qp : summarize_process().qps) requests += qp.context == context ? qp.sums.requests() : 0;
  return requests;
}

TEST(DriverForks, ChildCountsFromZeroWithoutHeldLocks) {
  FakeDevice device;
  counted_context(device.context);
  const std::uint32_t context = summarize_process().contexts.back().number;
  ibv_qp shared = device.qp(1);
  attach_qp(shared, nullptr, {}, false, 1024);
  Pace pace;
  std::uint64_t posted = 0;
  std::thread poster([&] {
    for (std::uint32_t number = 2; pace.step(); ++number) {
      ibv_qp own = device.qp(number);
      attach_qp(own, nullptr, {}, false, 1024);
      post_to(own, 3);
      post_to(shared, 2);
      posted += 5;
      detach_qp(own);
    }
  });
  for (int i = 0; i < kForks; ++i) {
    pace.before_fork();
    lock_for_fork();
    const auto counts_for_itself = [&] {
      restart_in_child("");
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
    };
    EXPECT_TRUE(child_finds(counts_for_itself, unlock_in_parent));
  }
  pace.end();
  poster.join();
  EXPECT_EQ(requests_of(context), posted);
  detach_context(device.context);
}

// A record of a thread's counts, filled with its number everywhere, so that a partial copy is detected.
QpCounts* made_counts(Arena& arena, std::uint32_t number) {
  QpCounts* const counts = arena.make<QpCounts>();
  if (counts == nullptr) std::abort();
  counts->thread = counts->qp_record = number;
  counts->reads_outstanding = number;
  Arena::publish(*counts);
  return counts;
}

// The counts that a child found for a QP are complete, from before the fork, and the list ends.
bool is_chain(const Arena& arena, const QpRecord& qp, std::uint64_t used) {
  const auto* const base = reinterpret_cast<const std::byte*>(&arena.header());
  std::uint64_t length = 0;
  for (const QpCounts* counts = qp.counts; counts != nullptr; counts = counts->next) {
    const auto at = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(counts) - base);
    if (at >= used || counts->head.kind != RecordKind::qp_counts || counts->thread != counts->qp_record) return false;
    if (++length > used / sizeof(QpCounts)) return false;  // the list is circular
  }
  return true;
}

TEST(DriverForks, LaterRecordsBelongToTheParent) {
  const TempDir folder;
  Arena arena;
  ASSERT_EQ(arena.open((folder / "parent").c_str(), std::uint64_t{1} << 30, usual_facts(NicFamily::mlx5, false)), 0);
  QpRecord* const qp = arena.make<QpRecord>();
  Arena::publish(*qp);
  Pace pace;
  std::thread maker([&] {
    for (std::uint32_t number = 1; pace.step(); ++number) {
      QpCounts* const counts = made_counts(arena, number);
      counts->next = qp->counts.load();
      qp->counts = counts;
    }
  });
  for (int i = 0; i < kForks; ++i) {
    pace.before_fork();
    const std::uint64_t used = arena.used();
    const auto has_whole_records = [&] {
      if (arena.copy_for_child((folder / "child").c_str(), used) != 0 || arena.header().used != used) return false;
      if (!is_chain(arena, *qp, used)) return false;
      QpCounts* const own = made_counts(arena, 1);
      own->next = qp->counts;
      qp->counts = own;
      return is_chain(arena, *qp, arena.used());
    };
    EXPECT_TRUE(child_finds(has_whole_records));
    std::filesystem::remove(folder / "child");
  }
  pace.end();
  maker.join();
  arena.close();
}

}  // namespace
}  // namespace verbscope::driver
