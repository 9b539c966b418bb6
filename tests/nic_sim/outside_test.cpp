// What a simulation offers to programs outside of its process: threads that come while it runs, the end of a wait by
// news from outside, memory of another address space, file descriptors of programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cstring>
#include <vector>

#include "common/error.hpp"
#include "nic_sim/nic/objects.hpp"
#include "tests/nic_sim/one_sided.hpp"

namespace verbscope::test {
namespace {

using std::chrono::microseconds;
using testing::HasSubstr;

TEST(Outside, IsAskedWhenAllThreadsWaitAndMayAddAThread) {
  TwoNodes nodes;
  bool ran = false;
  int stuck_times = 0;
  nodes.cluster.expect_threads(true);
  nodes.cluster.ask_outside([&](bool stuck) {
    if (!stuck) return false;
    if (++stuck_times == 1) {
      nodes.cluster.add_thread(1, 0, [&ran](SimNode&) { ran = true; });
      return true;
    }
    nodes.cluster.expect_threads(false);
    return false;
  });
  nodes.cluster.run();
  EXPECT_TRUE(ran);
  EXPECT_EQ(stuck_times, 2);
}

TEST(Outside, IsAskedBetweenQuantaWhileEventsAreLeft) {
  TwoNodes nodes;
  int asked = 0;
  nodes.cluster.ask_outside([&asked](bool stuck) {
    EXPECT_FALSE(stuck);
    ++asked;
    return false;
  });
  nodes.pass(microseconds(10));
  EXPECT_GT(asked, 0);
}

TEST(Outside, NothingNewEndsARunWhoseThreadsWait) {
  TwoNodes nodes;
  nodes.cluster.ask_outside([](bool) { return false; });
  nodes.cluster.add_thread(0, 0, [](SimNode& node) { node.idle(); });
  try {
    nodes.cluster.run();
    ADD_FAILURE() << "the run ended";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("all threads wait"));
  }
}

TEST(Outside, WakesAThreadThatSleeps) {
  TwoNodes nodes;
  sim::SimThread* sleeper = nullptr;
  Picos woken{0};
  nodes.cluster.ask_outside([&](bool stuck) {
    if (stuck) sleeper->end_sleep_at(microseconds(7));
    return stuck;
  });
  nodes.cluster.add_thread(0, 0, [&](SimNode& node) {
    sleeper = &node.thread();
    node.thread().sync();
    node.thread().sleep(Picos::max());
    woken = node.now();
  });
  nodes.cluster.run();
  EXPECT_EQ(woken, Picos(microseconds(7)));
}

TEST(Outside, ACoreIsFreeUntilAThreadTakesItAndAfterItsEnd) {
  TwoNodes nodes;
  EXPECT_EQ(nodes.cluster.free_core(0), 0);
  nodes.cluster.add_thread(0, 0, [](SimNode& node) { node.compute(Nanos(100)); });
  EXPECT_EQ(nodes.cluster.free_core(0), 1);
  EXPECT_EQ(nodes.cluster.free_core(1), 0);
  nodes.cluster.run();
  EXPECT_EQ(nodes.cluster.free_core(0), 0);
}

TEST(Outside, ANodeWhoseCoresAllHaveThreadsHasNoFreeCore) {
  Profile profile = steady_profile();
  profile.host.cores = 2;
  TwoNodes nodes(profile);
  for (int core = 0; core < profile.host.hardware_threads(); ++core) {
    nodes.cluster.add_thread(0, core, [](SimNode& node) { node.compute(Nanos(100)); });
  }
  EXPECT_EQ(nodes.cluster.free_core(0), std::nullopt);
  nodes.cluster.run();
}

// Memory at other addresses than those that its program uses.
class Elsewhere final : public sim::AddressSpace {
 public:
  Elsewhere(const std::uint8_t* begin, std::size_t bytes)
      : begin_(reinterpret_cast<std::uint64_t>(begin)), bytes_(bytes) {}

  void read(const void* from, std::byte* to, std::uint64_t bytes) const override {
    std::memcpy(to, bytes_.data() + offset(from), bytes);
  }
  void write(void* to, const std::byte* from, std::uint64_t bytes) const override {
    std::memcpy(const_cast<std::uint8_t*>(bytes_.data()) + offset(to), from, bytes);
  }
  std::uint8_t* at(std::uint64_t offset) { return bytes_.data() + offset; }

 private:
  std::uint64_t offset(const void* address) const { return reinterpret_cast<std::uint64_t>(address) - begin_; }

  std::uint64_t begin_;
  std::vector<std::uint8_t> bytes_;
};

// Node b's memory is of another process: its own bytes are never touched.
struct OtherProcess : OneSided {
  OtherProcess() : space(b.memory(), TestNode::kMemory) {
    sim::as_sim(b.context()).space = &space;
    mr = b.provider().reg_mr(b.pd(), b.memory(), TestNode::kMemory, kAllAccess);
  }
  ~OtherProcess() { b.provider().dereg_mr(mr); }

  ibv_send_wr to_it(ibv_send_wr wr) const {
    (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? wr.wr.atomic.rkey : wr.wr.rdma.rkey) = mr->rkey;
    return wr;
  }

  Elsewhere space;
  ibv_mr* mr;
};

TEST(Outside, AWriteReachesTheMemoryOfAnotherProcess) {
  OtherProcess pair;
  fill(pair.a.memory(kSourceAt), 5000, 3);
  ASSERT_EQ(pair.post(pair.to_it(pair.request(IBV_WR_RDMA_WRITE, 5000))), 0);
  ASSERT_EQ(pair.await(pair.a.send_cq(), 1).size(), 1u);
  pair.pass(kLong);
  EXPECT_TRUE(has_pattern(pair.space.at(kTargetAt), 5000, 3));
  EXPECT_FALSE(has_pattern(pair.b.memory(kTargetAt), 5000, 3));
}

TEST(Outside, AReadReturnsTheMemoryOfAnotherProcess) {
  OtherProcess pair;
  fill(pair.space.at(kTargetAt), 5000, 4);
  ASSERT_EQ(pair.post(pair.to_it(pair.request(IBV_WR_RDMA_READ, 5000))), 0);
  ASSERT_EQ(pair.await(pair.a.send_cq(), 1).size(), 1u);
  EXPECT_TRUE(has_pattern(pair.a.memory(kSourceAt), 5000, 4));
}

TEST(Outside, AnAtomicChangesTheMemoryOfAnotherProcess) {
  OtherProcess pair;
  const std::uint64_t before = 40;
  std::memcpy(pair.space.at(kTargetAt), &before, sizeof before);
  ASSERT_EQ(pair.post(pair.to_it(pair.atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 2))), 0);
  ASSERT_EQ(pair.await(pair.a.send_cq(), 1).size(), 1u);
  EXPECT_EQ(pair.word(pair.a, kSourceAt), 40u);
  pair.pass(kLong);
  std::uint64_t after = 0;
  std::memcpy(&after, pair.space.at(kTargetAt), sizeof after);
  EXPECT_EQ(after, 42u);
}

TEST(Outside, AnEventShowsAtTheFileDescriptorOfAProgram) {
  sim::Engine engine;
  sim::EventQueue<int> events(engine, Picos(0), false);
  const int fd = eventfd(0, EFD_NONBLOCK);
  Picos shown{0};
  events.show_by(fd, [&shown](Picos when) { shown = when; });
  events.arrive(5, microseconds(3));
  eventfd_t value = 0;
  EXPECT_EQ(eventfd_read(fd, &value), -1);
  while (engine.step()) {
  }
  EXPECT_EQ(eventfd_read(fd, &value), 0);
  EXPECT_EQ(shown, Picos(microseconds(3)));
}

}  // namespace
}  // namespace verbscope::test
