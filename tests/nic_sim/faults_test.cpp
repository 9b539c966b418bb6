// Faults of simulated machines: threads that end or stand still, and cables that are cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;

// Notes the times at which a thread runs, until `end`.
auto noting(std::vector<Picos>& times, Picos end) {
  return [&times, end](SimNode& node) {
    while (node.now() < end) {
      times.push_back(node.now());
      node.idle_until(node.now() + microseconds(1));
    }
  };
}

TEST(Faults, AThreadEndsWhereItWaitsAndAnotherTakesItsCore) {
  TwoNodes nodes;
  std::vector<Picos> first, second, other;
  int destroyed = 0;
  nodes.cluster.add_thread(0, 0, [&](SimNode& node) {
    const std::shared_ptr<int> count(&destroyed, [](int* n) { ++*n; });
    noting(first, microseconds(100))(node);
    ADD_FAILURE() << "the thread went on";
  });
  nodes.cluster.add_thread(1, 0, noting(other, microseconds(100)));
  nodes.cluster.run([&] {
    nodes.cluster.wait_until(microseconds(20));
    nodes.cluster.end_threads(0);
    EXPECT_EQ(destroyed, 1);
    nodes.cluster.wait_until(microseconds(30));
    nodes.cluster.add_thread(0, 0, noting(second, microseconds(100)));
  });
  EXPECT_LE(first.back(), Picos(microseconds(20)));
  EXPECT_EQ(second.front(), Picos(microseconds(30)));
  EXPECT_GE(second.back(), Picos(microseconds(98)));
  EXPECT_GE(other.back(), Picos(microseconds(98)));
}

TEST(Faults, AThreadEndsBeforeItBegins) {
  TwoNodes nodes;
  nodes.cluster.add_thread(0, 0, [](SimNode&) { ADD_FAILURE() << "the thread ran"; });
  nodes.cluster.end_threads(0);
  std::vector<Picos> times;
  nodes.cluster.add_thread(0, 0, noting(times, microseconds(5)));
  nodes.cluster.run();
  EXPECT_FALSE(times.empty());
}

TEST(Faults, ARunGoesOnWithoutThreadsIfMoreAreExpected) {
  TwoNodes nodes;
  std::vector<Picos> times;
  nodes.cluster.expect_threads(true);
  nodes.cluster.run([&] {
    nodes.cluster.wait_until(microseconds(10));
    nodes.cluster.add_thread(0, 0, noting(times, microseconds(20)));
    nodes.cluster.wait_until(microseconds(30));
    nodes.cluster.add_thread(1, 0, noting(times, microseconds(40)));
    nodes.cluster.expect_threads(false);
  });
  EXPECT_EQ(times.front(), Picos(microseconds(10)));
  EXPECT_GE(times.back(), Picos(microseconds(38)));
}

// Also in the middle of a computation, after which the thread posts.
TEST(Faults, AThreadStandsStill) {
  Pair pair(IBV_QPT_UD);
  std::vector<Picos> times;
  Picos posted{0};
  pair.cluster.add_thread(0, 0, noting(times, microseconds(100)));
  pair.cluster.add_thread(0, 1, [&](SimNode& node) {
    node.compute(microseconds(15));
    ibv_wc wc{};
    ibv_poll_cq(pair.a.send_cq(), 1, &wc);
    posted = node.now();
  });
  pair.cluster.run([&] {
    pair.cluster.wait_until(microseconds(10));
    pair.cluster.hold_threads(0, microseconds(50));
  });
  for (const Picos time : times) EXPECT_TRUE(time <= Picos(microseconds(10)) || time >= Picos(microseconds(60)));
  EXPECT_GE(times.back(), Picos(microseconds(98)));
  EXPECT_GE(posted, Picos(microseconds(65)));
}

class CutCables : public testing::TestWithParam<const char*> {};

TEST_P(CutCables, LosePacketsOfBothDirections) {
  Pair pair(IBV_QPT_UD, {.mtu = IBV_MTU_1024, .global = true}, steady_profile(GetParam()));
  ibv_ah* const back = pair.b.make_ah(0, {.global = true});
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(pair.a.post_recv(pair.qa, kIn, 1000), 0);
    ASSERT_EQ(pair.b.post_recv(pair.qb, kIn, 1000), 0);
  }
  const auto exchange = [&] {
    EXPECT_EQ(pair.send({.length = 100, .id = 1}), 0);
    EXPECT_EQ(pair.b.post(pair.qb, {.length = 100, .id = 2}, back, pair.qa->qp_num), 0);
    pair.pass(kLong);
    EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_SUCCESS));  // of a datagram that has left
    EXPECT_THAT(statuses(pair.b.poll_sends()), ElementsAre(IBV_WC_SUCCESS));
    return pair.a.poll_recvs().size() + pair.b.poll_recvs().size();
  };
  EXPECT_EQ(exchange(), 2u);
  for (const int cut : {0, 1}) {
    pair.cluster.cut(cut);
    EXPECT_EQ(exchange(), 0u);
    pair.cluster.join(cut);
  }
  EXPECT_EQ(pair.cluster.nic_counts(0).dropped_by_switch, 2u);
  EXPECT_EQ(pair.cluster.nic_counts(1).dropped_by_switch, 2u);
  EXPECT_EQ(exchange(), 2u);
}

// Enough messages to use up buffers or credits that were not given back.
TEST_P(CutCables, GiveBuffersBack) {
  Pair pair(IBV_QPT_RC, {.timeout = 8, .mtu = IBV_MTU_1024, .global = true}, steady_profile(GetParam()));  // 1 ms
  pair.cluster.cut(1);
  ASSERT_EQ(pair.a.post_list(pair.qa, {.length = 65536}, 32), 0);
  pair.pass(std::chrono::milliseconds(6));
  pair.cluster.join(1);
  for (int i = 0; i < 32; ++i) ASSERT_EQ(pair.b.post_recv(pair.qb, kIn, 65536), 0);
  EXPECT_EQ(pair.await(pair.b.recv_cq(), 32, std::chrono::milliseconds(20)).size(), 32u);
  EXPECT_GT(pair.cluster.nic_counts(1).dropped_by_switch, 0u);
}

INSTANTIATE_TEST_SUITE_P(Faults, CutCables, testing::Values("cib", "cx4"),
                         [](const auto& point) { return std::string(point.param); });

}  // namespace
}  // namespace verbscope::test
