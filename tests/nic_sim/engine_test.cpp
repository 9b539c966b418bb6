// The event engine runs near and far events by time, and events of equal time in the order of scheduling.
#include "nic_sim/time/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "nic_sim/profile/random.hpp"

namespace verbscope::sim {
namespace {

using testing::ElementsAre;

// Records the argument and time of each event.
struct Log {
  Engine engine;
  std::vector<std::uint64_t> arguments;
  std::vector<std::int64_t> times;

  static void note(void* log, std::uint64_t argument) {
    Log& self = *static_cast<Log*>(log);
    self.arguments.push_back(argument);
    self.times.push_back(self.engine.now().count());
  }
  void schedule(std::int64_t when, std::uint64_t argument) { engine.schedule(Picos(when), &note, this, argument); }
  void run() {
    while (engine.next_time() != Engine::kNever) engine.step();
  }
};

// The wheel covers 16384 buckets of 128 ps, which is 2.1 us. Later events are far events.
constexpr std::int64_t kFar = 2048 * 1024;

TEST(Engine, RunsEventsByTime) {
  Log log;
  log.schedule(300, 3);
  log.schedule(100, 1);
  log.schedule(200, 2);
  log.run();
  EXPECT_THAT(log.arguments, ElementsAre(1, 2, 3));
  EXPECT_THAT(log.times, ElementsAre(100, 200, 300));
  EXPECT_EQ(log.engine.events_run(), 3u);
}

TEST(Engine, RunsEventsOfEqualTimeInOrderOfScheduling) {
  Log log;
  for (std::uint64_t i = 0; i < 5; ++i) log.schedule(700, i);
  log.schedule(650, 9);
  log.run();
  EXPECT_THAT(log.arguments, ElementsAre(9, 0, 1, 2, 3, 4));
}

TEST(Engine, RunsFarEventsAmongNearOnesInOrder) {
  Log log;
  log.schedule(10 * kFar, 5);
  log.schedule(kFar, 3);      // the first time that the wheel does not cover
  log.schedule(kFar - 1, 2);  // the last time that it covers
  log.schedule(kFar + 1, 4);
  log.schedule(0, 1);
  log.run();
  EXPECT_THAT(log.arguments, ElementsAre(1, 2, 3, 4, 5));
}

TEST(Engine, RunsFarEventBeforeLaterNearEventOfEqualTime) {
  Log log;
  log.schedule(kFar + 500, 1);  // far when it is scheduled
  log.schedule(1000, 0);
  log.engine.step();
  log.schedule(kFar + 500, 2);  // the same time, near by now
  log.run();
  EXPECT_THAT(log.arguments, ElementsAre(0, 1, 2));
}

TEST(Engine, CancelsOneFarEvent) {
  Log log, other;
  for (std::uint64_t i = 1; i <= 5; ++i) log.schedule(10 * kFar, i);  // of equal time
  log.engine.schedule(Picos(20 * kFar), &Log::note, &other, 3);
  log.engine.cancel_far(&Log::note, &log, 3);
  log.run();
  EXPECT_THAT(log.arguments, ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(other.arguments, ElementsAre(3)) << "the event of another object";
}

TEST(Engine, ACancelledEventDoesNotLengthenTheRun) {
  Log log;
  log.schedule(100, 1);
  log.schedule(2 * kFar, 2);
  log.schedule(100 * kFar, 3);
  log.engine.cancel_far(&Log::note, &log, 3);
  log.run();
  EXPECT_EQ(log.engine.now(), Picos(2 * kFar));
  log.schedule(300 * kFar, 4);
  log.engine.cancel_far(&Log::note, &log, 4);
  EXPECT_EQ(log.engine.next_time(), Engine::kNever);
}

TEST(Engine, CancelsTheFirstOfSeveralFarEvents) {
  Log log;
  for (std::uint64_t i = 1; i <= 9; ++i) log.schedule(static_cast<std::int64_t>(10 - i) * kFar, i);
  log.engine.cancel_far(&Log::note, &log, 9);
  EXPECT_EQ(log.engine.next_time(), 2 * kFar);
  log.engine.cancel_far(&Log::note, &log, 5);
  log.run();
  EXPECT_THAT(log.arguments, ElementsAre(8, 7, 6, 4, 3, 2, 1));
}

TEST(Engine, CancelsNoNearEventAndNoneThatIsNotThere) {
  Log log;
  log.schedule(500, 1);
  log.schedule(kFar + 500, 2);
  log.engine.cancel_far(&Log::note, &log, 1);
  log.engine.cancel_far(&Log::note, &log, 7);
  log.engine.step();
  log.schedule(20 * kFar, 3);
  log.engine.advance_to(Picos(kFar));  // takes the second event into the wheel
  log.engine.cancel_far(&Log::note, &log, 2);
  log.run();
  EXPECT_THAT(log.arguments, ElementsAre(1, 2, 3));
}

TEST(Engine, RunsEventsScheduledByEvents) {
  struct Chain {
    Log log;
    static void link(void* chain, std::uint64_t left) {
      Chain& self = *static_cast<Chain*>(chain);
      Log::note(&self.log, left);
      if (left > 0) self.log.engine.schedule(self.log.engine.now() + Picos(kFar), &link, chain, left - 1);
    }
  } chain;
  chain.log.engine.schedule(Picos(7), &Chain::link, &chain, 3);
  chain.log.run();
  EXPECT_THAT(chain.log.times, ElementsAre(7, 7 + kFar, 7 + 2 * kFar, 7 + 3 * kFar));
}

TEST(Engine, TreatsPastTimeAsNowAfterDueEvents) {
  Log log;
  log.schedule(500, 0);
  log.schedule(500, 1);
  log.engine.step();
  log.schedule(100, 2);  // the time is 500 now
  log.run();
  EXPECT_THAT(log.arguments, ElementsAre(0, 1, 2));
  EXPECT_THAT(log.times, ElementsAre(500, 500, 500));
}

TEST(Engine, ReturnsTimeOfNextEvent) {
  Log log;
  EXPECT_EQ(log.engine.next_time(), Engine::kNever);
  log.schedule(3 * kFar, 0);
  EXPECT_EQ(log.engine.next_time(), 3 * kFar);
  log.schedule(40, 0);
  EXPECT_EQ(log.engine.next_time(), 40);
  log.engine.step();
  EXPECT_EQ(log.engine.next_time(), 3 * kFar);
  log.engine.step();
  EXPECT_EQ(log.engine.next_time(), Engine::kNever);
}

TEST(Engine, RunsNothingFromTheHorizonOn) {
  for (const std::int64_t horizon : {std::int64_t{300}, 20 * kFar}) {  // events are near, and far
    Log log;
    for (const std::int64_t when : {horizon - 1, horizon, horizon + 1}) log.schedule(when, 0);
    log.engine.set_horizon(horizon);
    while (log.engine.step()) {
    }
    EXPECT_THAT(log.times, ElementsAre(horizon - 1));
    EXPECT_FALSE(log.engine.step());
    EXPECT_EQ(log.engine.now(), Picos(horizon - 1));
    EXPECT_EQ(log.engine.next_time(), horizon);
    log.engine.set_horizon(Engine::kNever);
    log.run();
    EXPECT_THAT(log.times, ElementsAre(horizon - 1, horizon, horizon + 1));
  }
}

TEST(Engine, WorksAfterClockIsAdvancedPastWheel) {
  Log log;
  log.engine.advance_to(Picos(5 * kFar + 123));
  log.schedule(5 * kFar + 200, 2);
  log.schedule(5 * kFar + 150, 1);
  log.schedule(9 * kFar, 3);
  log.run();
  EXPECT_THAT(log.arguments, ElementsAre(1, 2, 3));
}

// The reference: std::multimap keeps equal keys in the order of insertion. The parameter limits how far ahead events
// are scheduled.
class EngineAgainstMultimap : public testing::TestWithParam<std::uint64_t> {};

TEST_P(EngineAgainstMultimap, RunsARandomScheduleInTheSameOrder) {
  Random random(GetParam());
  Log log;
  std::multimap<std::int64_t, std::uint64_t> reference;
  std::uint64_t number = 0;
  for (int round = 0; round < 100'000; ++round) {
    const bool grow = reference.empty() || (reference.size() < 300 && random.below(2) == 0);
    if (grow) {
      const std::int64_t now = log.engine.now().count();
      const auto ahead = static_cast<std::int64_t>(random.below(GetParam()));
      const std::int64_t coarse = ahead / 64 * 64;  // many equal times
      log.schedule(now + coarse - 64, number);
      reference.emplace(std::max(now, now + coarse - 64), number);
      ++number;
    } else {
      ASSERT_EQ(log.engine.next_time(), reference.begin()->first);
      log.engine.step();
      ASSERT_EQ(log.arguments.back(), reference.begin()->second) << "event " << log.arguments.size();
      ASSERT_EQ(log.times.back(), reference.begin()->first);
      reference.erase(reference.begin());
    }
  }
  EXPECT_GT(log.arguments.size(), 10'000u);
}

INSTANTIATE_TEST_SUITE_P(Spread, EngineAgainstMultimap, testing::Values(200, 20'000, kFar / 2, 2 * kFar, 50 * kFar));

TEST(Engine, MemoryGrowsOnlyWithOutstandingEvents) {
  struct Nothing {
    static void happens(void*, std::uint64_t) {}
  };
  Engine engine;
  Random random(1);
  for (int i = 0; i < 50; ++i) engine.schedule(Picos(i), &Nothing::happens, nullptr);
  const auto run = [&](int events) {
    for (int i = 0; i < events; ++i) {
      engine.step();
      engine.schedule(engine.now() + Picos(static_cast<std::int64_t>(random.below(2 * kFar))), &Nothing::happens,
                      nullptr);
    }
    return engine.places();
  };
  EXPECT_LE(run(2'000'000), 64u + 50u);  // near events (a power of two) and far events
  EXPECT_EQ(engine.events_run(), 2'000'000u);
}

}  // namespace
}  // namespace verbscope::sim
