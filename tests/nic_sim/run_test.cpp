// Runs of simulated threads: how they end, and what a cluster can do after one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(Run, FailsOnDeadlock) {
  TwoNodes nodes;
  nodes.cluster.add_thread(0, 0, [&](SimNode& node) {
    for (;;) node.idle();
  });
  try {
    nodes.cluster.run();
    FAIL() << "returned";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("all threads wait"));
  }
}

TEST(Run, RethrowsExceptionOfThread) {
  TwoNodes nodes;
  nodes.cluster.add_thread(0, 0, [&](SimNode& node) {
    node.compute(Nanos(500));
    ibv_wc wc{};
    ibv_poll_cq(nodes.a.send_cq(), 1, &wc);
    throw Error("from a thread");
  });
  nodes.cluster.add_thread(1, 0, [&](SimNode& node) {
    for (;;) node.idle();
  });
  EXPECT_THROW(nodes.cluster.run(), Error);
}

TEST(Run, DataPathWorksOutsideAfterException) {
  Pair pair(IBV_QPT_UD);
  pair.cluster.add_thread(0, 0, [&](SimNode&) { throw Error("from a thread"); });
  EXPECT_THROW(pair.cluster.run(), Error);
  EXPECT_EQ(pair.a.post_recv(pair.qa, kIn, 128), 0);
  EXPECT_EQ(pair.send({.length = 8}), 0);
  EXPECT_THAT(pair.a.poll_sends(), SizeIs(0));
}

TEST(Run, AClusterCanBeDestroyedWhileThreadsSleep) {
  int ended = 0;
  {
    TwoNodes nodes;
    nodes.cluster.add_thread(0, 0, [&](SimNode& node) {
      const std::shared_ptr<int> count(&ended, [](int* n) { ++*n; });
      const std::vector<int> heap(100);
      for (;;) node.idle();
    });
    nodes.cluster.add_thread(1, 0, [](SimNode&) { throw Error("ends the run"); });
    EXPECT_THROW(nodes.cluster.run(), Error);
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 1);
}

TEST(Run, ContinuesWithNewThreads) {
  TwoNodes nodes;
  nodes.pass(std::chrono::microseconds(10));
  const Picos after_first = nodes.cluster.now();
  nodes.pass(std::chrono::microseconds(10));
  EXPECT_GE(nodes.cluster.now() - after_first, Picos(std::chrono::microseconds(10)));
}

}  // namespace
}  // namespace verbscope::test
