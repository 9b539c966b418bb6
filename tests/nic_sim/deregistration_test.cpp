// Memory that is deregistered while requests use it: the adapter no longer accesses it, and requests that still need it
// fail (manual page of ibv_dereg_mr; InfiniBand Architecture Specification 1.3, volume 1, 10.6.6).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nic_sim/one_sided.hpp"

namespace verbscope::test {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t kBytes = 64 * 1024;

// A separate region at one of the nodes, deregistered during a request.
struct ShortLived : OneSided {
  explicit ShortLived(std::uint8_t* (*place)(OneSided&), TestNode OneSided::*node)
      : OneSided(IBV_QPT_RC, {.mtu = IBV_MTU_1024}),
        mr((this->*node).provider().reg_mr((this->*node).pd(), place(*this), kBytes, kAllAccess)),
        owner(this->*node) {}
  void deregister() { ASSERT_EQ(owner.provider().dereg_mr(mr), 0); }

  ibv_mr* mr;
  TestNode& owner;
};

struct AtTarget : ShortLived {
  AtTarget() : ShortLived([](OneSided& pair) { return pair.b.memory(kTargetAt); }, &OneSided::b) {}
  ibv_send_wr use(ibv_send_wr wr) {
    (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? wr.wr.atomic.rkey : wr.wr.rdma.rkey) = mr->rkey;
    return wr;
  }
};

struct AtSource : ShortLived {
  AtSource() : ShortLived([](OneSided& pair) { return pair.a.memory(kSourceAt); }, &OneSided::a) {}
};

TEST(Deregistered, NoWriteReachesMemoryAfterwards) {
  for (int moment = 500; moment < 6000; moment += 100) {
    AtTarget pair;
    fill(pair.a.memory(kSourceAt), 4096, 3);
    ASSERT_EQ(pair.post(pair.use(pair.request(IBV_WR_RDMA_WRITE, 4096))), 0);
    pair.pass(Nanos(moment));
    pair.b.destroy(pair.qb);
    pair.deregister();
    const std::vector<std::uint8_t> before(pair.b.memory(kTargetAt), pair.b.memory(kTargetAt) + 4096);
    pair.pass(kLong);
    EXPECT_EQ(std::memcmp(before.data(), pair.b.memory(kTargetAt), before.size()), 0) << "after " << moment << " ns";
  }
}

TEST(Deregistered, RestOfLongWriteIsRefused) {
  AtTarget pair;
  ASSERT_EQ(pair.post(pair.use(pair.request(IBV_WR_RDMA_WRITE, kBytes))), 0);  // 5 us on the wire
  pair.pass(std::chrono::microseconds(4));
  pair.deregister();
  pair.pass(kLong);
  EXPECT_THAT(statuses(pair.a.poll_sends()), ElementsAre(IBV_WC_REM_ACCESS_ERR));
}

// Posts with `post` and deregisters after a time, for many times. The request must succeed with `arrived` true, or be
// refused; some must be refused.
template <class Post, class Arrived>
void expect_all_or_refused(Post&& post, Arrived&& arrived) {
  int refused = 0;
  for (int moment = 500; moment < 5000; moment += 50) {
    AtTarget pair;
    post(pair);
    pair.pass(Nanos(moment));
    pair.deregister();
    pair.pass(kLong);
    const auto done = pair.a.poll_sends();
    ASSERT_EQ(done.size(), 1u);
    if (done[0].status == IBV_WC_SUCCESS) {
      EXPECT_TRUE(arrived(pair)) << "after " << moment << " ns";
    } else {
      EXPECT_EQ(done[0].status, IBV_WC_REM_ACCESS_ERR);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Deregistered, ReadReturnsItsBytesOrFails) {
  expect_all_or_refused(
      [](AtTarget& pair) {
        fill(pair.b.memory(kTargetAt), 16 * 1024, 5);
        ASSERT_EQ(pair.post(pair.use(pair.request(IBV_WR_RDMA_READ, 16 * 1024))), 0);
      },
      [](AtTarget& pair) { return has_pattern(pair.a.memory(kSourceAt), 16 * 1024, 5); });
}

TEST(Deregistered, AtomicReturnsValueOrFails) {
  expect_all_or_refused(
      [](AtTarget& pair) {
        pair.set_word(pair.b, kTargetAt, 42);
        ASSERT_EQ(pair.post(pair.use(pair.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1))), 0);
      },
      [](AtTarget& pair) { return pair.word(pair.a, kSourceAt) == 42; });
}

TEST(Deregistered, PayloadBeingReadCausesLocalError) {
  int failed = 0;
  for (int moment = 100; moment < 2500; moment += 100) {
    AtSource pair;
    fill(pair.a.memory(kSourceAt), 4096, 9);
    ibv_send_wr wr = pair.request(IBV_WR_RDMA_WRITE, 4096);
    pair.sge.lkey = pair.mr->lkey;
    ASSERT_EQ(pair.post(wr), 0);
    pair.pass(Nanos(moment));
    pair.deregister();
    std::memset(pair.a.memory(kSourceAt), 0, 4096);  // the program may use the memory again
    pair.pass(kLong);
    const auto done = pair.a.poll_sends();
    ASSERT_EQ(done.size(), 1u);
    if (done[0].status == IBV_WC_SUCCESS) {
      EXPECT_TRUE(has_pattern(pair.b.memory(kTargetAt), 4096, 9)) << "after " << moment << " ns";
    } else {
      EXPECT_EQ(done[0].status, IBV_WC_LOC_PROT_ERR);
      ++failed;
    }
  }
  EXPECT_GT(failed, 0);
}

TEST(Registration, CostsThreadTimeForCallAndEachPage) {
  Profile profile = test::steady_profile();
  profile.host.register_call = std::chrono::nanoseconds(3000);
  profile.host.register_page = std::chrono::nanoseconds(200);
  test::TwoNodes nodes(profile);
  Picos took{0};
  nodes.cluster.add_thread(0, 0, [&](SimNode& node) {
    const Picos before = node.now();
    // From the last byte of a page to the first of the third: three pages.
    ibv_mr* const mr = nodes.a.provider().reg_mr(nodes.a.pd(), nodes.a.memory(4095), 4098, IBV_ACCESS_LOCAL_WRITE);
    took = node.now() - before;
    EXPECT_EQ(nodes.a.provider().dereg_mr(mr), 0);
  });
  nodes.cluster.run();
  EXPECT_EQ(took, Picos(std::chrono::nanoseconds(3000 + 3 * 200)));
}

}  // namespace
}  // namespace verbscope::test
