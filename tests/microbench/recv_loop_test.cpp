// The receive loop on a scripted device: reposting, validation, the interval.
#include "microbench/loop/recv_loop.hpp"

#include <gtest/gtest.h>

#include "microbench/loop/receiver.hpp"
#include "tests/microbench/scripted_device.hpp"

namespace verbscope {
namespace {

using test::ScriptedDevice;
using test::ScriptedNode;

constexpr std::uint32_t kSize = 16;

// One QP with 8 RECVs in lists of 4.
struct Thread {
  ScriptedDevice device;
  ScriptedNode node;
  RunControl control;
  ThreadTally tally;
  Operation operation{.transport = Transport::rc, .payload = kSize, .seed = 3};
  PayloadChecker checker{operation};
  std::vector<ibv_recv_wr> requests = std::vector<ibv_recv_wr>(8);
  std::vector<std::byte> memory = std::vector<std::byte>(8 * 128);
  std::vector<RecvLane> queues = std::vector<RecvLane>(1);
  RecvState state;

  Thread() {
    for (std::uint32_t j = 0; j < 8; ++j) {
      requests[j].wr_id = recv_id(0, j);
      requests[j].next = j % 4 == 3 ? nullptr : &requests[j + 1];
    }
    queues[0] = {.qp = device.add_qp(8),
                 .ring = requests.data(),
                 .length = 8,
                 .list = 4,
                 .payloads = memory.data(),
                 .stride = 128};
    EXPECT_EQ(post_next_recvs(queues[0]), 0);
    EXPECT_EQ(post_next_recvs(queues[0]), 0);
    state.cq = device.cq();
    state.queues = queues;
    state.checker = &checker;
    control.phase = Phase::measure;
  }

  // A message of `slot` arrives; `damage` may spoil it.
  void message(
      std::uint32_t slot, const std::function<void(std::byte*)>& damage = [](std::byte*) {}) {
    std::byte* const place = memory.data() + (device.recv_ids.front() & 0xffffffff) * 128;
    fill_payload(operation.seed, slot, {place, kSize});
    damage(place);
    device.deliver(kSize);
  }
};

TEST(RecvLoop, CountsRepostsAndEndsOnQuit) {
  Thread thread;
  int sent = 0;
  thread.node.on_idle = [&] {
    if (sent == 100) {
      thread.control.quit = true;
    } else {
      thread.message(static_cast<std::uint32_t>(sent++ % 16));
    }
  };
  recv_loop<true, false>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
  EXPECT_EQ(thread.queues[0].received, 100u);
  EXPECT_EQ(thread.state.wrong, 0u);
  EXPECT_FALSE(thread.device.overflowed);
  EXPECT_EQ(thread.device.recv_ids.size(), 8u);  // 100 is a multiple of 4: every list is posted again
}

TEST(RecvLoop, DetectsAFlippedByte) {
  Thread thread;
  thread.message(1);
  thread.message(2, [](std::byte* place) { place[kSize - 1] ^= std::byte{1}; });
  thread.message(3);
  thread.node.on_idle = [&] { thread.control.quit = true; };
  recv_loop<true, false>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.queues[0].received, 3u);
  EXPECT_EQ(thread.state.wrong, 1u);
}

TEST(RecvLoop, MeasuresExactlyTheGoal) {
  Thread thread;
  thread.state.goal = 10;
  for (int i = 0; i < 7; ++i) thread.message(0);
  thread.node.on_idle = [&, more = 20]() mutable {
    if (more-- == 0) thread.control.quit = true;
    thread.message(0);
    thread.message(0);
    thread.message(0);
  };
  recv_loop<true, false>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.interval.end_ops - thread.tally.interval.begin_ops, 10u);
}

TEST(RecvLoop, StopsOnAFailedCompletion) {
  Thread thread;
  thread.device.edit = [](ibv_wc& wc) { wc.status = IBV_WC_WR_FLUSH_ERR; };
  thread.message(0);
  recv_loop<false, false>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.end.kind, EndKind::completion_failed);
  EXPECT_EQ(thread.tally.end.code, IBV_WC_WR_FLUSH_ERR);
}

TEST(RecvLoop, EndsAfterTheStopWhileMessagesArrive) {
  Thread thread;
  for (int i = 0; i < 4; ++i) thread.message(0);
  thread.device.completions_per_poll = 1;
  thread.device.edit = [&, seen = 0](ibv_wc&) mutable {
    thread.message(0);  // one more for each: the queue never runs dry
    if (++seen == 50) thread.control.phase = Phase::stop;
    if (seen == 60) thread.control.quit = true;
  };
  recv_loop<false, false>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.queues[0].received, 60u);
  EXPECT_EQ(thread.tally.interval.end_ops, 50u);
}

TEST(RecvLoop, ClientClosesItsIntervalIfTheStopFollowsTheLastMessage) {
  for (const bool client : {false, true}) {
    Thread thread;
    thread.state.close_when_idle = client;
    for (int i = 0; i < 4; ++i) thread.message(0);
    thread.node.on_idle = [&, idle = 0]() mutable {
      if (++idle == 2) thread.control.phase = Phase::stop;
      if (idle == 4) thread.control.quit = true;
    };
    recv_loop<true, false>(thread.node, thread.state, thread.control, thread.tally);
    EXPECT_EQ(thread.tally.closed(), client);
  }
}

TEST(RecvShape, PutsPayloadsOnCacheLinesBehindTheGrh) {
  const RecvShape datagram = recv_shape({.transport = Transport::ud, .payload = 60}, 512);
  EXPECT_EQ(datagram.offset % 64, 0u);
  EXPECT_EQ(datagram.headroom, 40u);
  EXPECT_GE(datagram.offset, 40u);
  EXPECT_EQ(datagram.stride, 128u);
  EXPECT_EQ(recv_shape({.transport = Transport::ud, .payload = 65}, 512).stride, 256u);
  EXPECT_EQ(recv_shape({.transport = Transport::rc, .payload = 65}, 512).stride, 128u);
}

TEST(RecvShape, SharesPlacesOnlyWithoutValidation) {
  EXPECT_EQ(recv_shape({.transport = Transport::rc, .payload = 1u << 20}, 512).places, 4u);
  EXPECT_EQ(recv_shape({.transport = Transport::rc, .payload = 1u << 20, .validate = true}, 512).places, 512u);
}

TEST(RecvList, IsThirtyTwoOrHalfOfAShallowQueue) {
  EXPECT_EQ(recv_list(512), 32u);
  EXPECT_EQ(recv_list(10), 5u);
  EXPECT_EQ(recv_list(1), 1u);
}

TEST(RecvLoop, RepostsToASharedQueueInAnyOrder) {
  Thread thread;
  thread.queues[0].srq = thread.device.srq();
  std::swap(thread.device.recv_ids[0], thread.device.recv_ids[5]);  // another QP's message completes first
  int sent = 0;
  thread.node.on_idle = [&] {
    if (sent == 4) {
      thread.control.quit = true;
    } else {
      thread.message(static_cast<std::uint32_t>(sent++));
    }
  };
  recv_loop<true, true>(thread.node, thread.state, thread.control, thread.tally);
  EXPECT_EQ(thread.tally.end.kind, EndKind::finished);
  EXPECT_EQ(thread.state.wrong, 0u);
  EXPECT_EQ(thread.device.srq_posts, 1);
  // The four that completed, 5 1 2 3, are posted again, and none of those that still wait.
  const std::vector<std::uint64_t> waiting(thread.device.recv_ids.begin(), thread.device.recv_ids.end());
  EXPECT_EQ(waiting, (std::vector<std::uint64_t>{4, 0, 6, 7, 3, 2, 1, 5}));
}

}  // namespace
}  // namespace verbscope
