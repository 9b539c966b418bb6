// The posting loop against a scripted device: flow control, turns, accounting, failures.
#include "microbench/loop/send_loop.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "microbench/loop/send_ring.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ScriptedDevice;
using test::ScriptedNode;

// A thread with `queues` QPs, as sender.cpp sets one up.
struct SendThread {
  ScriptedDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  std::deque<SendRing> rings;
  std::vector<SendQueue> queues;
  SendState state;

  SendThread(std::uint32_t count, std::uint32_t list, std::uint32_t every, std::uint32_t depth) : queues(count) {
    state.ready.resize(16);
    const Operation op{.post_list = list, .signal_every = every, .tx_depth = depth};
    for (std::uint32_t i = 0; i < count; ++i) {
      const RingShape shape = ring_shape(op, 1);
      rings.emplace_back(op, shape, PayloadArea{}, std::vector<UdAddress>{}, i);
      queues[i] = {
          .qp = device.add_qp(depth), .index = i, .depth = depth, .ring = {rings.back().requests(), shape.length}};
      state.ready[state.ready_tail++] = &queues[i];
    }
    state.cq = device.cq();
    state.queues = queues;
    state.post_list = list;
    state.signal_every = every;
    control.phase = Phase::measure;
  }

  template <SendTraits traits = SendTraits{}>
  void run(std::uint64_t goal) {
    state.goal = goal;
    send_loop<traits>(node, state, control, tally);
  }
};

TEST(SendLoop, NeverPostsMoreThanTheQueueHolds) {
  for (const std::uint32_t list : {1u, 3u, 16u}) {
    for (const std::uint32_t every : {1u, 4u, 7u}) {
      SendThread thread(1, list, every, list + every - 1);  // the tightest queue that works
      thread.run(every * 100);
      EXPECT_FALSE(thread.device.overflowed) << list << " " << every;
      EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
    }
  }
}

TEST(SendLoop, MeasuresExactlyTheGoal) {
  SendThread thread(2, 4, 8, 32);
  thread.run(8 * 50);
  EXPECT_TRUE(thread.tally.closed());
  EXPECT_EQ(thread.tally.interval.end_ops - thread.tally.interval.begin_ops, 400u);
  EXPECT_GT(thread.tally.interval.end, thread.tally.interval.begin);
}

TEST(SendLoop, LeavesNothingOutstandingAndEndsEachQueueOnASignal) {
  SendThread thread(3, 5, 4, 16);
  thread.run(4 * 33);
  std::uint64_t posted = 0;
  for (const SendQueue& queue : thread.queues) {
    EXPECT_EQ(queue.room, queue.depth);
    EXPECT_EQ(queue.posted() % 4, 0u);
    posted += queue.posted();
  }
  EXPECT_EQ(posted, thread.device.requests);
  EXPECT_EQ(thread.tally.done_ops, posted);
}

TEST(SendLoop, PostsWholeLists) {
  SendThread thread(1, 16, 64, 128);
  thread.run(64 * 10);
  for (const std::uint32_t length : thread.device.list_lengths) EXPECT_EQ(length, 16u);
}

TEST(SendLoop, UsesQueuesInTurnAndSkipsFullOnes) {
  SendThread thread(3, 1, 2, 4);
  thread.device.completions_per_poll = 1;
  thread.run(60);
  const std::vector<std::uint32_t> first(thread.device.posts.begin(), thread.device.posts.begin() + 12);
  EXPECT_EQ(first, (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
  EXPECT_FALSE(thread.device.overflowed);
}

TEST(SendLoop, SpecialisationsPostTheSame) {
  SendThread plain(1, 1, 1, 8), special(1, 1, 1, 8);
  plain.run(500);
  special.run<SendTraits{true, true, true}>(500);
  EXPECT_EQ(plain.device.posts, special.device.posts);
  EXPECT_EQ(plain.tally.interval.end_ops, special.tally.interval.end_ops);
  EXPECT_EQ(plain.device.polls, special.device.polls);
}

TEST(SendLoop, StopsOnAFailedCompletionWithItsQueue) {
  SendThread thread(2, 1, 1, 4);
  int seen = 0;
  thread.device.edit = [&](ibv_wc& wc) {
    if (++seen == 6) wc.status = IBV_WC_RETRY_EXC_ERR, wc.vendor_err = 0x81;
  };
  thread.run(1000);
  EXPECT_EQ(thread.tally.end.kind, EndKind::completion_failed);
  EXPECT_EQ(thread.tally.end.code, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(thread.tally.end.vendor_error, 0x81u);
  EXPECT_EQ(thread.tally.end.queue, 1u);  // posts alternate 0 1 0 1 0 1: the sixth is of queue 1
}

TEST(SendLoop, StopsOnAFailedPost) {
  SendThread thread(1, 1, 1, 4);
  thread.device.fail_post_after = 3;
  thread.run(1000);
  EXPECT_EQ(thread.tally.end.kind, EndKind::post_failed);
  EXPECT_EQ(thread.tally.end.code, ENOMEM);
}

TEST(SendLoop, GivesUpOnQuitIfNothingCompletes) {
  SendThread thread(1, 1, 1, 4);
  thread.device.completions_per_poll = 0;
  int idle = 0;
  thread.node.on_idle = [&] {
    if (++idle == 5) thread.control.quit = true;
  };
  thread.run(1000);
  EXPECT_EQ(thread.tally.end.kind, EndKind::gave_up);
  EXPECT_EQ(idle, 5);
}

TEST(SendLoop, ClosesTheIntervalAtTheFirstCompletionAfterTheStop) {
  SendThread thread(1, 1, 1, 4);
  thread.device.edit = [&, seen = 0](ibv_wc&) mutable {
    if (++seen == 100) thread.control.phase = Phase::stop;
  };
  thread.device.completions_per_poll = 1;
  thread.run(MeasuredInterval::kNoGoal);
  EXPECT_EQ(thread.tally.interval.begin_ops, 1u);
  EXPECT_EQ(thread.tally.interval.end_ops, 100u);
}

// Two queues with a completion for eight requests each, both at every 800th idle poll. Between the phase changes at
// idle polls 1000, 3000 and 4500 each queue completes at 1600, 2400, 3200, 4000 and 4800.
TEST(SendLoop, EachQueueHasAnIntervalIfCompletionsComeInBursts) {
  SendThread thread(2, 1, 8, 8);
  std::vector<IntervalBounds> intervals(2);
  thread.state.windows = intervals;
  thread.device.completions_per_poll = 0;
  thread.control.phase = Phase::warmup;
  thread.device.edit = [&, seen = 0](ibv_wc&) mutable {
    if (++seen % 2 == 0) thread.device.completions_per_poll = 0;
  };
  thread.node.on_idle = [&, idle = 0]() mutable {
    ++idle;
    if (idle % 800 == 0) thread.device.completions_per_poll = 2;
    if (idle == 1000) thread.control.phase = Phase::measure;
    if (idle == 3000) thread.control.phase = Phase::halved;
    if (idle == 4500) thread.control.phase = Phase::closed;
    if (thread.tally.closed()) thread.control.phase = Phase::stop;
  };
  thread.run(MeasuredInterval::kNoGoal);
  ASSERT_EQ(thread.tally.queue_intervals.size(), 2u);
  for (const IntervalBounds& queue : thread.tally.queue_intervals) {
    EXPECT_EQ(queue.half_ops - queue.begin_ops, 16u);  // at 2400 and 3200
    EXPECT_EQ(queue.end_ops - queue.half_ops, 16u);    // at 4000 and 4800
    EXPECT_LT(queue.begin, queue.half);
    EXPECT_LT(queue.half, queue.end);
  }
}

// Each queue completes its share, and the interval of the thread has all operations.
TEST(SendLoop, EachQueueCompletesItsShareOfTheGoal) {
  SendThread thread(2, 1, 1, 8);
  std::vector<IntervalBounds> intervals(2);
  thread.state.windows = intervals;
  thread.run(2 * 50);
  for (const IntervalBounds& queue : intervals) EXPECT_EQ(queue.end_ops - queue.begin_ops, 50u);
  EXPECT_TRUE(thread.tally.closed());
  EXPECT_EQ(thread.tally.interval.end_ops - thread.tally.interval.begin_ops, 100u);
  EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
}

// Requests that are flushed after a failure do not hide it, even if the failure comes with the goal.
TEST(SendLoop, ReportsTheFirstFailureNearTheGoal) {
  for (int failing = 1; failing <= 120; ++failing) {
    SendThread thread(2, 1, 1, 8);
    std::vector<IntervalBounds> intervals(2);
    thread.state.windows = intervals;
    int seen = 0;
    thread.device.edit = [&](ibv_wc& wc) {
      if (++seen >= failing) wc.status = seen == failing ? IBV_WC_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR;
    };
    thread.run(2 * 50);
    if (seen < failing) break;
    EXPECT_EQ(thread.tally.end.kind, EndKind::completion_failed) << failing;
    EXPECT_EQ(thread.tally.end.code, IBV_WC_RETRY_EXC_ERR) << failing;
  }
}

TEST(SendLoop, RemoteAddressesChangeWithEachLap) {
  SendThread thread(1, 2, 2, 8);  // a ring of two
  RemoteWalk walk({.address = 0, .bytes = 7 * 64}, 64, Addresses::sequential, 0);
  SendQueue& queue = thread.queues[0];
  walk.point(queue.ring.data(), static_cast<std::uint32_t>(queue.ring.size()));
  queue.walk = &walk;
  thread.run(40);
  // After n laps the ring stands at the places that follow its 2n predecessors.
  EXPECT_EQ(queue.ring[0].wr.rdma.remote_addr, queue.posted() % 7 * 64);
  EXPECT_EQ(queue.ring[1].wr.rdma.remote_addr, (queue.posted() + 1) % 7 * 64);
}

TEST(SendLoop, UsesQueuesAtRandomIfAsked) {
  SendThread turns(8, 1, 1, 1), random(8, 1, 1, 1);
  random.state.random_turn = 1;
  turns.run(800);
  random.run(800);
  EXPECT_NE(turns.device.posts, random.device.posts);
  EXPECT_FALSE(random.device.overflowed);
  // Nobody starves: each queue is taken about 100 times.
  for (std::uint32_t queue = 0; queue < 8; ++queue) {
    EXPECT_NEAR(static_cast<double>(std::ranges::count(random.device.posts, queue)), 100, 40) << queue;
  }
}

TEST(SendLoop, SleepsOnEventsAfterArmingAndOneMorePoll) {
  SendThread thread(1, 1, 1, 4);
  ibv_comp_channel channel{};
  thread.state.channel = &channel;
  thread.node.cq = thread.device.cq();
  thread.device.completions_per_poll = 0;
  thread.node.on_idle = [&] {
    if (thread.node.sleeps == 3) thread.device.completions_per_poll = 4;
  };
  thread.run(4);
  EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
  EXPECT_EQ(thread.node.sleeps, 3);
  EXPECT_EQ(thread.device.armed, 3);  // once before each sleep
  EXPECT_GE(thread.device.polls, 7);  // two for each sleep, and one that finds something
}

TEST(SendLoop, ValidatesTheBytesOfEveryRead) {
  const Operation op{
      .verb = Verb::read, .payload = 16, .post_list = 2, .signal_every = 2, .tx_depth = 4, .validate = true};
  SendThread thread(1, 2, 2, 4);
  std::vector<std::byte> memory(4 * 128);
  const SendRing ring(op, ring_shape(op, 1),
                      {.address = reinterpret_cast<std::uint64_t>(memory.data()), .stride = 128, .slots = 4}, {}, 0);
  std::vector<ibv_send_wr> requests = ring.list();
  for (std::uint32_t j = 0; j < 4; ++j) requests[j].next = j % 2 == 0 ? &requests[j + 1] : nullptr;
  thread.queues[0] = {.qp = thread.queues[0].qp, .depth = thread.queues[0].depth, .ring = requests};

  PayloadChecker checker(op);
  thread.state.checker = &checker;
  int completions = 0;
  thread.device.edit = [&](ibv_wc&) {  // what the two READs of a list bring, right before they are seen to be complete
    for (std::size_t j = 0; j < 2; ++j) {
      const auto place = std::span(memory).subspan((2 * static_cast<std::size_t>(completions) + j) % 4 * 128, 16);
      fill_payload(op.seed, 3, place);
      if (completions == 5 && j == 1) place[7] ^= std::byte{1};
    }
    ++completions;
  };
  thread.device.completions_per_poll = 1;
  thread.run<SendTraits{.validated = true}>(40);
  EXPECT_EQ(thread.state.checked, thread.device.requests);
  EXPECT_EQ(thread.state.wrong, 1u);
}

}  // namespace
}  // namespace verbscope
