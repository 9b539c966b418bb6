// Quanta of virtual time: actions between them, messages across them, and the end of a run.
#include "nic_sim/time/quanta.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "common/error.hpp"
#include "nic_sim/time/barrier.hpp"
#include "tests/common/temp_dir.hpp"
#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope::test {
namespace {

const SimWork kByTwo{.partitions = {0, 1}, .threads = 2};
using std::chrono::microseconds;

// Two idle nodes with a latency of at least 100 ps between them.
struct World {
  World() { process.unfinished_threads = 1; }
  void happen(std::int64_t when) { engine().schedule(Picos(when), &note, this); }
  void end(std::int64_t when) { engine().schedule(Picos(when), &last, this); }
  sim::Engine& engine() { return process.engine; }

  static void note(void* world, std::uint64_t) {
    World& self = *static_cast<World*>(world);
    self.log.push_back(self.engine().now().count());
  }
  static void last(void* world, std::uint64_t) { static_cast<World*>(world)->process.unfinished_threads = 0; }

  sim::LogicalProcess process{true};
  sim::Mailbox mailbox{{0, 0}, 1};
  sim::Quanta quanta{{&process}, mailbox, Picos(100), 1, [](std::size_t) {}};
  std::vector<std::int64_t> log;
};

TEST(Quanta, AnAppointmentComesBeforeWhatElseHappensThen) {
  World world;
  std::size_t before = 9;
  world.happen(30);
  world.happen(50);
  world.quanta.at(Picos(50), [&] {
    before = world.log.size();
    EXPECT_EQ(world.quanta.now(), Picos(50));
  });
  world.end(60);
  world.quanta.run();
  EXPECT_EQ(before, 1u);
  EXPECT_THAT(world.log, testing::ElementsAre(30, 50));
}

// Two parts that take no time trigger each other forever.
TEST(Quanta, ATimeThatStandsStillEndsTheRunWithThatReason) {
  World world;
  struct Answer {
    static void now(void* world, std::uint64_t) {
      sim::Engine& engine = static_cast<World*>(world)->engine();
      engine.schedule(engine.now(), &now, world);
    }
  };
  world.engine().schedule(Picos(30'000), &Answer::now, &world);
  world.end(60'000);
  EXPECT_THAT(message_of<Error>([&] { world.quanta.run(); }),
              testing::HasSubstr("simulated time stands still at 30 ns"));
}

TEST(Quanta, AppointmentsOfOneMomentAreKeptInTheOrderOfAsking) {
  World world;
  std::string order;
  for (const char name : {'a', 'b', 'c'}) world.quanta.at(Picos(20), [&order, name] { order += name; });
  world.end(60);
  world.quanta.run();
  EXPECT_EQ(order, "abc");
}

// The next quantum would begin at 150 and end at 250 without the event that the appointment sends for 140.
TEST(Quanta, WhatAnAppointmentSendsArrivesInTime) {
  World world;
  world.quanta.at(Picos(40), [&] { world.mailbox.send(0, 1, Picos(140), &World::note, &world, 0); });
  world.happen(150);
  world.end(240);
  world.quanta.run();
  EXPECT_THAT(world.log, testing::ElementsAre(140, 150));
}

TEST(Quanta, WhatIsSentWhileAQuantumRunsComesInTheNextInTheOrderOfTheNodes) {
  struct Sender {
    static void send(void* world, std::uint64_t node) {
      World& self = *static_cast<World*>(world);
      const auto from = static_cast<std::uint32_t>(node);
      self.mailbox.send(from, 0, Picos(200), &Sender::arrive, world, node);
    }
    static void arrive(void* world, std::uint64_t node) {
      static_cast<World*>(world)->log.push_back(static_cast<std::int64_t>(node));
    }
  };
  World world;
  world.engine().schedule(Picos(10), &Sender::send, &world, 1);
  world.engine().schedule(Picos(20), &Sender::send, &world, 0);
  world.end(300);
  world.quanta.run();
  EXPECT_THAT(world.log, testing::ElementsAre(0, 1));
}

TEST(Quanta, AThreadsErrorEndsTheRunOfAllHostThreads) {
  for (const SimWork& work : {SimWork{}, kByTwo}) {
    SimCluster cluster(steady_profile(), 2, 1, work);
    cluster.add_thread(0, 0, [](SimNode& node) {
      for (;;) node.idle_until(node.now() + Nanos(100));
    });
    cluster.add_thread(1, 0, [](SimNode& node) {
      node.idle_until(microseconds(5));
      throw std::runtime_error("enough");
    });
    EXPECT_THAT([&] { cluster.run(); }, testing::ThrowsMessage<std::runtime_error>("enough"));
    EXPECT_NEAR(to_seconds(cluster.now()) * 1e6, 5.0, 0.5);  // a quantum is 415 ns
  }
}

TEST(Quanta, WhereNothingCanHappenAnyMoreAllHostThreadsEnd) {
  SimCluster cluster(steady_profile(), 2, 1, kByTwo);
  for (int node = 0; node < 2; ++node) cluster.add_thread(node, 0, [](SimNode& self) { self.idle(); });
  EXPECT_THAT([&] { cluster.run(); }, testing::ThrowsMessage<Error>(testing::HasSubstr("all threads wait")));
}

TEST(Quanta, ASimulatedThreadMakesAppointmentsOnlyWhereAllAreSimulatedByOne) {
  for (const SimWork& work : {SimWork{}, kByTwo}) {
    SimCluster cluster(steady_profile(), 2, 1, work);
    Picos kept{0};
    cluster.add_thread(0, 0, [&](SimNode& node) {
      node.idle_until(Nanos(50));
      cluster.at(Nanos(60), [&] { kept = cluster.now(); });
      node.idle_until(Nanos(70));
    });
    if (work.threads == 1) {
      cluster.run();
      EXPECT_EQ(kept, Picos(Nanos(60)));
    } else {
      EXPECT_THAT([&] { cluster.run(); }, testing::ThrowsMessage<Error>(testing::HasSubstr("one partition")));
    }
  }
}

// One node sends; another one, in a different partition, returns the packets.
TEST(Quanta, PacketsOfAOneWayFlowComeBack) {
  SimCluster cluster(steady_profile(), 2, 1, kByTwo);
  TestNode from(cluster, 0), to(cluster, 1);
  ibv_qp* source = from.make_qp(IBV_QPT_UC);
  ibv_qp* sink = to.make_qp(IBV_QPT_UC);
  ASSERT_EQ(bring_up(from, source, {}, 1, sink->qp_num), 0);
  ASSERT_EQ(bring_up(to, sink, {}, 0, source->qp_num), 0);
  int sent = 0;
  cluster.add_thread(0, 0, [&](SimNode& node) {
    while (sent < 2000) {
      if (from.post(source, {.length = 64}) == 0) ++sent;
      ibv_wc wc{};
      while (ibv_poll_cq(from.send_cq(), 1, &wc) == 0) node.idle();
    }
  });
  cluster.run();
  EXPECT_EQ(sent, 2000);
  EXPECT_LE(cluster.packets_allocated(), 64u);  // one at a time, and those that wait for the end of a quantum
}

TEST(Barrier, NobodyGoesOnBeforeAllAreThere) {
  constexpr int kRounds = 2000;
  constexpr int kThreads = 3;
  sim::Barrier barrier(kThreads);
  int arrived[kThreads] = {};
  int wrong = 0;
  const auto take_part = [&](int self) {
    for (int round = 1; round <= kRounds; ++round) {
      arrived[self] = round;
      barrier.arrive_and_wait([&] {
        for (const int other : arrived) wrong += other != round ? 1 : 0;
      });
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(take_part, i);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_THAT(arrived, testing::Each(kRounds));
}

}  // namespace
}  // namespace verbscope::test
