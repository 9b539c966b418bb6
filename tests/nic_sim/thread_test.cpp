// Simulated threads: the cost of calls, and that an idle thread sees the same as a spinning one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;

TEST(ThreadClock, CallsCostProfileTimes) {
  const HostProfile host = steady_profile().host;
  Pair pair(IBV_QPT_UD);
  std::vector<Picos> took;
  pair.cluster.add_thread(0, 0, [&](SimNode& node) {
    Picos last = node.now();
    const auto lap = [&] {
      took.push_back(node.now() - last);
      last = node.now();
    };
    ibv_wc wc{};
    ibv_poll_cq(pair.a.send_cq(), 1, &wc);
    lap();
    pair.a.post_recvs(pair.qa, kIn, 128, 3);
    lap();
    pair.send({.length = 60, .flags = kSignaled | kInline});  // two lines
    lap();
    pair.send_list({.length = 60, .flags = kInline}, 3);
    lap();
    node.compute(Nanos(1234));
    lap();
    ibv_poll_cq(pair.a.send_cq(), 1, &wc);
    lap();
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  });
  pair.cluster.run();
  EXPECT_THAT(took, ElementsAre(host.poll_call, host.post_recv_call + 3 * host.post_recv_wqe,
                                host.post_call + host.post_wqe + 2 * host.wc_line,
                                host.post_call + 3 * host.post_wqe + host.doorbell, Nanos(1234),
                                host.poll_call + host.poll_cqe));
}

TEST(ThreadClock, StallsWhenTheWriteCombiningBuffersAreFull) {
  // A slow link, on which a line (90 bytes) takes 1 us, and ten buffers. Of twelve lines, the last two wait for the
  // first two.
  Profile profile = steady_profile();
  profile.wire.pcie.lane_mb_per_s = 90.0 / 16;
  profile.link.tlp_share = profile.link.host_share = 1;
  profile.link.mmio_gap = Picos(0);
  Pair pair(IBV_QPT_UD, {}, profile);
  Picos end{0};
  pair.cluster.add_thread(0, 0, [&](SimNode& node) {
    const Picos begin = node.now();
    for (int i = 0; i < 6; ++i) pair.send({.length = 60, .flags = kInline});
    end = node.now() - begin;
  });
  pair.cluster.run();
  // The sixth post needs two buffers, which are free when lines 1 and 2 have left: 2 us after the CPU time of the first
  // call. Then its own two lines are written.
  const HostProfile& host = profile.host;
  EXPECT_EQ(end, host.post_call + host.post_wqe + Nanos(2000) + 2 * host.wc_line);
}

TEST(ThreadClock, PollingMoreLinesCostsMore) {
  Pair pair(IBV_QPT_UD);
  Picos took{0};
  pair.cluster.add_thread(0, 0, [&](SimNode& node) {
    const Picos begin = node.now();
    node.poll_memory(70);
    took = node.now() - begin;
  });
  pair.cluster.run();
  EXPECT_EQ(took, 70 * steady_profile().host.poll_memory);
}

TEST(ThreadClock, AddToSharedWordWaitsForItsLine) {
  Pair pair(IBV_QPT_UD);
  const Picos own = steady_profile().host.atomic_add, transfer = steady_profile().host.line_transfer;
  alignas(64) std::uint64_t word = 0;
  std::vector<std::pair<std::uint64_t, Picos>> first, second;
  const auto add = [&word](SimNode& node, auto& seen) {
    const std::uint64_t before = node.fetch_add(word, 10);
    seen.emplace_back(before, node.now());
  };
  pair.cluster.add_thread(0, 0, [&](SimNode& node) {
    add(node, first);
    add(node, first);
    node.compute(Nanos(1000));
    add(node, first);
  });
  pair.cluster.add_thread(0, 1, [&](SimNode& node) {
    node.compute(Nanos(1));
    add(node, second);
  });
  pair.cluster.run();
  // The first owner also waits for a transfer, because no core had the line. Then the second thread gets the line, then
  // the first one again, which meanwhile waits for its own stores. Its third add needs no transfer.
  const Picos once = own + transfer, back = once + std::max(own, transfer) + transfer;
  EXPECT_THAT(first,
              ElementsAre(std::pair(0ul, once), std::pair(20ul, back), std::pair(30ul, back + Nanos(1000) + own)));
  EXPECT_THAT(second, ElementsAre(std::pair(10ul, once + transfer)));
  EXPECT_EQ(word, 40u);
}

TEST(Idle, EndsWhenAnotherThreadAddsToAWatchedWord) {
  Pair pair(IBV_QPT_UD);
  const HostProfile host = steady_profile().host;
  alignas(64) std::uint64_t word = 0;
  Picos woke{0};
  pair.cluster.add_thread(0, 0, [&](SimNode& node) {
    node.watch(&word, sizeof word);
    const auto added = [&] {
      node.poll_memory();
      return word != 0;
    };
    while (!added()) node.idle();
    woke = node.now();
  });
  pair.cluster.add_thread(0, 1, [&](SimNode& node) {
    node.compute(Nanos(5000));
    node.fetch_add(word, 1);
  });
  pair.cluster.run();
  EXPECT_GE(woke, Nanos(5000) + host.atomic_add);
  EXPECT_LE(woke, Nanos(5000) + host.atomic_add + host.line_transfer + 2 * host.poll_memory);
}

TEST(Idle, EndsAtDeadlineWithoutEvents) {
  Pair pair(IBV_QPT_UD);
  Picos woke{0};
  pair.cluster.add_thread(0, 0, [&](SimNode& node) {
    ibv_wc wc{};
    ibv_poll_cq(pair.a.send_cq(), 1, &wc);
    node.idle_until(Nanos(5000));
    EXPECT_EQ(ibv_poll_cq(pair.a.send_cq(), 1, &wc), 0);
    woke = node.now();
    node.idle_until(node.now());  // in the past: no wait
    EXPECT_EQ(node.now(), woke);
  });
  pair.cluster.run();
  EXPECT_NEAR(static_cast<double>(woke.count()), 5e6, 2 * 15e3);  // in whole passes of 15 ns
}

// A receiver that waits for five messages on one or two queues, in one of these ways. Returns when it saw each.
enum class Way { spin, idle, idle_after_other_polls };

std::vector<Picos> times_seen(Way way, int queues) {
  Pair pair(IBV_QPT_UD);
  pair.b.post_recvs(pair.qb, kIn, 128, 5);
  std::vector<Picos> seen;
  pair.cluster.add_thread(0, 0, [&](SimNode& node) {
    for (int i = 0; i < 5; ++i) {
      node.compute(Nanos(1777 * i));
      pair.send({.length = 8, .flags = kInline});
    }
  });
  pair.cluster.add_thread(1, 0, [&](SimNode& node) {
    node.compute(Nanos(3));
    ibv_wc wc{};
    if (way == Way::idle_after_other_polls) {
      // Empty polls that are not part of an empty pass.
      for (int i = 0; i < 20; ++i) ibv_poll_cq(pair.b.recv_cq(), 1, &wc);
    }
    while (seen.size() < 5) {
      if (queues == 2) ibv_poll_cq(pair.b.send_cq(), 1, &wc);
      if (ibv_poll_cq(pair.b.recv_cq(), 1, &wc) == 1) {
        seen.push_back(node.now());
      } else if (way != Way::spin) {
        node.idle();
      }
    }
  });
  pair.cluster.run();
  return seen;
}

TEST(Idle, FindsCompletionsWhenSpinningThreadWould) {
  EXPECT_EQ(times_seen(Way::idle, 1), times_seen(Way::spin, 1));
}

TEST(Idle, IncludesEachQueueOfPass) {
  EXPECT_EQ(times_seen(Way::idle, 2), times_seen(Way::spin, 2));
}

TEST(Idle, EndsAfterWholePasses) {
  for (const int queues : {1, 2}) {
    Pair pair(IBV_QPT_UD);
    pair.b.post_recvs(pair.qb, kIn, 128, 1);
    pair.send({.length = 8, .flags = kInline});
    Picos waited{0};
    pair.cluster.add_thread(1, 0, [&](SimNode& node) {
      ibv_wc wc{};
      const Picos begin = node.now();
      for (;;) {
        if (queues == 2) ibv_poll_cq(pair.b.send_cq(), 1, &wc);
        const Picos before = node.now();
        if (ibv_poll_cq(pair.b.recv_cq(), 1, &wc) == 1) {
          waited = before - begin;
          return;
        }
        node.idle();
      }
    });
    pair.cluster.run();
    const std::int64_t extra = queues == 2 ? 15'000 : 0;  // the other queue is polled first in the last pass
    EXPECT_GT(waited.count(), 1'000'000);
    EXPECT_EQ((waited.count() - extra) % (queues * 15'000), 0) << queues;
  }
}

TEST(Idle, PassBeginsWithLastPollOfQueue) {
  // 20 polls of 15 ns before: the same times as a spinning thread, not multiples of 300 ns.
  const auto seen = times_seen(Way::idle_after_other_polls, 1);
  EXPECT_EQ(seen, times_seen(Way::spin, 1));
}

TEST(Idle, ThreadWithoutQueuesWaitsForScheduledAction) {
  TwoNodes nodes;
  bool stop = false;
  Picos woken{0};
  nodes.cluster.add_thread(0, 0, [&](SimNode& node) {
    while (!stop) node.idle();
    woken = node.now();
  });
  nodes.cluster.at(std::chrono::microseconds(50), [&] { stop = true; });
  nodes.cluster.run();
  EXPECT_GE(woken, Picos(std::chrono::microseconds(50)));
  EXPECT_LT(woken, Picos(std::chrono::microseconds(51)));
}

TEST(Idle, ActionDuringPassIsNotMissed) {
  // The controller changes the word after the thread has read it and while the thread polls (15 ns).
  TwoNodes nodes;
  bool stop = false;
  nodes.cluster.add_thread(0, 0, [&](SimNode& node) {
    ibv_wc wc{};
    while (!stop) {
      if (ibv_poll_cq(nodes.a.send_cq(), 1, &wc) == 0) node.idle();
    }
  });
  nodes.cluster.at(Nanos(7), [&] { stop = true; });
  EXPECT_NO_THROW(nodes.cluster.run());
  EXPECT_TRUE(stop);
}

TEST(Idle, ThreadsSharingQueueAreBothWoken) {
  Pair pair(IBV_QPT_UD);
  pair.b.post_recvs(pair.qb, kIn, 128, 2);
  int taken = 0;
  for (int core = 0; core < 2; ++core) {
    pair.cluster.add_thread(1, core, [&](SimNode& node) {
      ibv_wc wc{};
      while (ibv_poll_cq(pair.b.recv_cq(), 1, &wc) == 0) node.idle();
      ++taken;
    });
  }
  pair.cluster.add_thread(0, 0, [&](SimNode& node) {
    pair.send({.length = 8});
    node.compute(Nanos(10'000));
    pair.send({.length = 8});
  });
  EXPECT_NO_THROW(pair.cluster.run());
  EXPECT_EQ(taken, 2);
}

}  // namespace
}  // namespace verbscope::test
