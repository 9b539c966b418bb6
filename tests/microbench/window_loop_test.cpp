// The loop of a window over several QPs against a scripted device: what is outstanding, whom it waits for, accounting.
#include "microbench/loop/window_loop.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ScriptedDevice;
using test::ScriptedNode;

constexpr std::uint32_t kDepth = 128;
constexpr std::uint64_t kStride = 128;

// A thread with `queues` QPs, as window_sender.cpp sets one up; a `window` of 0 is none.
struct WindowThread {
  ScriptedDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  std::deque<RemoteWalk> walks;
  std::vector<SendQueue> queues;
  std::vector<WindowSlot> slots;
  std::vector<ibv_send_wr> requests;
  std::vector<std::byte> landing;
  WindowState state;
  std::uint64_t seen = 0;  // completions

  WindowThread(std::uint32_t count, std::uint32_t window, std::uint32_t list = 1, std::uint32_t every = 1)
      : slots(window > 0 ? window : list), requests(slots.size()), landing(slots.size() * kStride) {
    for (std::uint32_t i = 0; i < count; ++i) {
      walks.emplace_back(RemoteRegion{4096, 4096, i}, kStride, Addresses::sequential, i);
      queues.push_back(
          {.qp = device.add_qp(kDepth), .index = i, .depth = kDepth, .signal_every = every, .walk = &walks.back()});
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i] = ibv_send_wr{};
      requests[i].next = (i + 1) % list == 0 ? nullptr : &requests[i + 1];
    }
    state.queues = queues;
    state.slots = slots;
    state.requests = requests;
    state.landing = landing;
    state.stride = kStride;
    state.payload = 8;
    state.bounded = window > 0;
    state.post_list = list;
    state.signal_every = every;
    state.turn = Choice(count, false, 0, 0);
    device.edit = [this](ibv_wc&) { ++seen; };
    control.phase = Phase::measure;
  }

  void run(std::uint64_t goal) {
    state.goal = goal;
    WindowLoop<ScriptedNode>(node, state, control, tally).run();
  }
  std::uint64_t counted() const { return tally.interval.end_ops - tally.interval.begin_ops; }
};

TEST(WindowLoop, HasAWindowOutstandingAndNoMore) {
  for (const bool whole : {false, true}) {
    for (const std::uint32_t queues : {1u, 3u}) {
      WindowThread thread(queues, 6, 2);
      thread.state.whole = whole;
      thread.device.completions_per_poll = 1;
      std::uint64_t most = 0;
      thread.device.edit = [&](ibv_wc&) { most = std::max(most, thread.device.requests - thread.seen++); };
      thread.run(200);
      EXPECT_EQ(most, 6u) << queues << whole;
      EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
    }
  }
}

TEST(WindowLoop, WaitsForTheOldestAlthoughOthersAreBack) {
  WindowThread thread(2, 4);
  for (SendQueue& queue : thread.queues) thread.device.add_cq(queue.qp);
  // Posts go to queues 0 1 0 1: the first, of queue 0, stays out, and nothing is posted although queue 1 has completed.
  std::uint64_t posted_while_held = 0;
  bool hold = true;
  thread.device.held = [&](const ibv_qp* qp) { return hold && qp == thread.queues[0].qp; };
  thread.node.on_idle = [&] {
    posted_while_held = thread.device.requests;
    hold = false;
  };
  thread.run(40);
  EXPECT_EQ(posted_while_held, 4u);
  EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
}

TEST(WindowLoop, WaitsForTheWholeWindowBeforeTheNext) {
  WindowThread thread(1, 5);
  thread.state.whole = true;
  thread.device.completions_per_poll = 1;
  bool apart = true;
  thread.device.edit = [&](ibv_wc&) { apart = apart && thread.device.requests == thread.seen++ / 5 * 5 + 5; };
  thread.run(50);
  EXPECT_TRUE(apart);
}

TEST(WindowLoop, MeasuresExactlyTheGoalAndLeavesNothingOutstanding) {
  for (const std::uint32_t every : {1u, 4u}) {
    WindowThread thread(3, every == 1 ? 8 : 0, 1, every);
    thread.run(120);
    EXPECT_EQ(thread.counted(), 120u);
    for (const SendQueue& queue : thread.queues) EXPECT_EQ(queue.due, 0u);
    EXPECT_FALSE(thread.device.overflowed);
    EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
  }
}

TEST(WindowLoop, WithoutAWindowEachQueueMayHaveTwoBatchesLessTwo) {
  // Queue 0 completes nothing: its fourth request is signaled, and waited for before the third one behind it.
  WindowThread thread(1, 0, 1, 4);
  std::uint64_t posted = 0;
  thread.device.held = [&](const ibv_qp*) { return posted == 0; };
  thread.node.on_idle = [&] { posted = thread.device.requests; };
  thread.run(40);
  EXPECT_EQ(posted, 6u);
}

TEST(WindowLoop, ReadsSeenInMemoryAreBackWhenTheirLastByteIs) {
  WindowThread thread(2, 4, 1, 8);
  thread.state.by_memory = true;
  int looks = 0;
  thread.node.on_poll_memory = [&] {  // every third look finds the oldest one there
    if (++looks % 3 == 0) thread.landing[thread.state.head % 4 * kStride + 7] = std::byte{1};
  };
  thread.run(80);
  EXPECT_EQ(thread.counted(), 80u);
  EXPECT_GE(looks, 240);
}

TEST(WindowLoop, StopsOnAFailedCompletionAndSaysWhichQueue) {
  WindowThread thread(2, 2);
  thread.device.edit = [&](ibv_wc& wc) {
    if (++thread.seen == 6) wc.status = IBV_WC_REM_ACCESS_ERR;
  };
  thread.run(100);
  EXPECT_EQ(thread.tally.end.kind, EndKind::completion_failed);
  EXPECT_EQ(thread.tally.end.queue, 1u);  // requests alternate: the sixth is of queue 1
}

TEST(WindowLoop, AFailureIsSeenWhileItPollsMemory) {
  WindowThread thread(1, 2, 1, 8);
  thread.state.by_memory = true;
  thread.device.recv_ids.push_back(send_id(0));
  thread.device.deliver(0);
  thread.device.edit = [](ibv_wc& wc) { wc.status = IBV_WC_RETRY_EXC_ERR; };
  thread.run(10);
  EXPECT_EQ(thread.tally.end.kind, EndKind::completion_failed);
}

TEST(WindowLoop, StopsOnAFailedPost) {
  WindowThread thread(1, 2);
  thread.device.fail_post_after = 5;
  thread.run(100);
  EXPECT_EQ(thread.tally.end.kind, EndKind::post_failed);
}

TEST(WindowLoop, GivesUpWhenNothingMoreWillCome) {
  WindowThread thread(1, 2);
  thread.device.held = [](const ibv_qp*) { return true; };
  thread.node.on_idle = [&] { thread.control.quit = true; };
  thread.run(100);
  EXPECT_EQ(thread.tally.end.kind, EndKind::gave_up);
}

TEST(CompleteBefore, NeverAsksForMoreThanCanComplete) {
  for (const std::uint32_t every : {1u, 2u, 5u, 64u}) {
    for (const std::uint32_t list : {1u, 3u, 16u}) {
      for (std::uint64_t posted = 0; posted < 1000; ++posted) {
        const std::uint64_t needed = complete_before(posted, list, every, every + list - 1);
        EXPECT_LE(needed, posted / every * every) << posted << " " << list << " " << every;
      }
    }
  }
}

}  // namespace
}  // namespace verbscope
