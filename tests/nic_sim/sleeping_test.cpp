// A server that sleeps between messages: nothing is lost, its core is idle meanwhile, and each run is the same.
#include <gtest/gtest.h>

#include "tests/nic_sim/event_rig.hpp"

namespace verbscope::test {
namespace {

// Rounds of ping-pong: b sleeps until each message arrives, a polls for each answer.
struct PingPong {
  std::vector<std::int64_t> times;
  std::uint64_t events_run = 0;
  Picos elapsed{0};
  Picos busy_a{0}, busy_b{0};
};

PingPong ping_pong(int rounds) {
  EventRig rig(load_profile("cib"));
  PingPong result;
  const Picos begin = rig.cluster.now();
  const Picos busy_a = rig.cluster.busy_time(0);
  const Picos busy_b = rig.cluster.busy_time(1);
  rig.cluster.add_thread(1, 2, [&](SimNode& node) {
    for (int done = 0; done < rounds;) {
      int taken = rig.poll();
      if (taken == 0) {
        rig.arm();
        taken = rig.poll();
        if (taken == 0) {
          ASSERT_EQ(node.await_event(rig.channel, kTimeout), rig.cq) << "round " << done;
          continue;
        }
      }
      done += taken;
      for (int i = 0; i < taken; ++i) {
        EXPECT_EQ(rig.b.post(rig.qb, {.length = 8, .flags = kInline}), 0);
        EXPECT_EQ(rig.b.post_recv(rig.qb, 0, 64), 0);
      }
    }
  });
  rig.cluster.add_thread(0, 2, [&](SimNode& node) {
    for (int done = 0; done < rounds; ++done) {
      rig.send(done % 16 == 15 ? kInline | kSignaled : kInline);
      ibv_wc wc{};
      while (ibv_poll_cq(rig.a.recv_cq(), 1, &wc) == 0) node.idle();
      result.times.push_back(node.now().count());
      EXPECT_EQ(rig.a.post_recv(rig.qa, 0, 64), 0);
      while (ibv_poll_cq(rig.a.send_cq(), 1, &wc) == 1) {
      }
    }
  });
  rig.cluster.run();
  result.events_run = rig.cluster.events_run();
  result.elapsed = rig.cluster.now() - begin;
  result.busy_a = rig.cluster.busy_time(0) - busy_a;
  result.busy_b = rig.cluster.busy_time(1) - busy_b;
  return result;
}

TEST(SleepingServer, AnswersEveryMessageAndLeavesItsCoreFree) {
  const PingPong played = ping_pong(40);
  ASSERT_EQ(played.times.size(), 40u);
  const auto share = [&](Picos busy) {
    return static_cast<double>(busy.count()) / static_cast<double>(played.elapsed.count());
  };
  EXPECT_GT(share(played.busy_a), 0.99);
  EXPECT_LT(share(played.busy_b), 0.5);
  EXPECT_GT(share(played.busy_b), 0.01);
}

TEST(SleepingServer, DoesTheSameEveryTime) {
  const PingPong first = ping_pong(20);
  const PingPong second = ping_pong(20);
  EXPECT_EQ(first.times, second.times);
  EXPECT_EQ(first.events_run, second.events_run);
}

}  // namespace
}  // namespace verbscope::test
