// Fibers wait for times of the engine's clock, park until they are woken, and end cleanly in all cases.
#include "nic_sim/time/fiber.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace verbscope::sim {
namespace {

using testing::ElementsAre;

void run(Engine& engine) {
  while (engine.next_time() != Engine::kNever) engine.step();
}

TEST(Fiber, WaitingFibersRunInTimeOrder) {
  Engine engine;
  std::vector<std::string> log;
  const auto note = [&](const char* who) { log.push_back(who + std::to_string(engine.now().count())); };
  Fiber a(engine, [&] {
    for (int when : {100, 400, 500}) {
      a.wait_until(Picos(when));
      note("a");
    }
  });
  Fiber b(engine, [&] {
    for (int when : {50, 300, 500}) {
      b.wait_until(Picos(when));
      note("b");
    }
  });
  // Both start by events, so that neither runs ahead of the other.
  for (Fiber* fiber : {&a, &b}) {
    engine.schedule(
        Picos(0), [](void* self, std::uint64_t) { static_cast<Fiber*>(self)->resume(); }, fiber);
  }
  run(engine);
  // b began its wait for 500 at 300, before a at 400.
  EXPECT_THAT(log, ElementsAre("b50", "a100", "b300", "a400", "b500", "a500"));
  EXPECT_TRUE(a.finished());
  EXPECT_TRUE(b.finished());
}

TEST(Fiber, DueEventsRunBeforeWaitReturns) {
  struct Count {
    static void up(void* count, std::uint64_t) { ++*static_cast<int*>(count); }
  };
  Engine engine;
  int events = 0;
  int seen = -1;
  Fiber fiber(engine, [&] {
    engine.schedule(Picos(10), &Count::up, &events);
    engine.schedule(Picos(20), &Count::up, &events);  // due at the same time, scheduled before
    engine.schedule(Picos(21), &Count::up, &events);
    fiber.wait_until(Picos(20));
    seen = events;
  });
  fiber.resume();
  run(engine);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(events, 3);
}

TEST(Fiber, WaitWithoutEarlierEventAdvancesClock) {
  Engine engine;
  Fiber fiber(engine, [&] { fiber.wait_until(Picos(1234)); });
  fiber.resume();
  EXPECT_TRUE(fiber.finished());
  EXPECT_EQ(engine.now(), Picos(1234));
  EXPECT_EQ(engine.events_run(), 0u);
}

TEST(Fiber, WaitBeyondHorizonEndsAfterHorizonMoves) {
  Engine engine;
  engine.set_horizon(100);
  int reached = 0;
  Fiber fiber(engine, [&] {
    for (const int when : {99, 100, 150}) {
      fiber.wait_until(Picos(when));
      reached = when;
    }
  });
  fiber.resume();
  while (engine.step()) {
  }
  EXPECT_EQ(reached, 99);
  EXPECT_EQ(engine.now(), Picos(99));
  engine.set_horizon(Engine::kNever);
  run(engine);
  EXPECT_EQ(reached, 150);
}

TEST(Fiber, AParkLastsUntilTheEarliestWake) {
  Engine engine;
  std::vector<Picos> woken;
  Fiber sleeper(engine, [&] {
    for (int i = 0; i < 2; ++i) {
      sleeper.park();
      woken.push_back(engine.now());
    }
  });
  Fiber waker(engine, [&] {
    waker.wait_until(Picos(100));
    for (const int when : {150, 120, 130}) sleeper.wake_at(Picos(when));
    waker.wait_until(Picos(140));
    sleeper.wake_at(Picos(200));  // the wakes at 130 and 150 were for the previous park
  });
  sleeper.resume();
  waker.resume();
  run(engine);
  EXPECT_THAT(woken, ElementsAre(Picos(120), Picos(200)));
}

TEST(Fiber, WakeOfRunningFiberIsIgnored) {
  Engine engine;
  int passes = 0;
  Fiber fiber(engine, [&] {
    engine.schedule(
        Picos(50), [](void* self, std::uint64_t) { static_cast<Fiber*>(self)->wake_at(Picos(60)); }, &fiber);
    fiber.wait_until(Picos(100));
    ++passes;
    fiber.park();
    ++passes;
  });
  fiber.resume();
  run(engine);
  EXPECT_EQ(engine.now(), Picos(100));
  EXPECT_EQ(passes, 1);
  EXPECT_FALSE(fiber.finished());
}

TEST(Fiber, ExceptionOfBodyReachesCallerOfEngine) {
  Engine engine;
  Fiber fiber(engine, [&] {
    fiber.wait_until(Picos(10));
    engine.schedule(
        Picos(20), [](void*, std::uint64_t) {}, nullptr);
    fiber.wait_until(Picos(30));
    throw std::runtime_error("from inside");
  });
  fiber.resume();
  EXPECT_THROW(run(engine), std::runtime_error);
  EXPECT_TRUE(fiber.finished());
  EXPECT_EQ(engine.now(), Picos(30));
}

TEST(Fiber, CaughtExceptionStaysInBody) {
  Engine engine;
  std::string caught;
  Fiber fiber(engine, [&] {
    try {
      fiber.park();
      throw std::runtime_error("inside");
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
  });
  fiber.resume();
  fiber.wake_at(Picos(5));
  run(engine);
  EXPECT_EQ(caught, "inside");
}

// Counts its destruction.
struct Guard {
  explicit Guard(int& n) : ended(n) {}
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { ++ended; }
  int& ended;
};

TEST(Fiber, DestroyingUnfinishedFiberDestroysItsStackObjects) {
  Engine engine;
  int ended = 0;
  {
    Fiber parked(engine, [&] {
      const Guard guard(ended);
      const auto buffer = std::make_unique<std::vector<int>>(1000, 7);
      parked.park();
      ADD_FAILURE() << "went on after the park: " << buffer->size();
    });
    Fiber never_started(engine, [&] { const Guard guard(ended); });
    parked.resume();
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 1);
}

TEST(Fiber, ManyFibersAlternate) {
  Engine engine;
  int finished = 0;
  std::vector<std::unique_ptr<Fiber>> fibers;
  for (int i = 0; i < 200; ++i) {
    fibers.push_back(std::make_unique<Fiber>(engine, [&, i] {
      for (int turn = 1; turn <= 20; ++turn) fibers[static_cast<std::size_t>(i)]->wait_until(Picos(turn * 1000 + i));
      ++finished;
    }));
  }
  for (auto& fiber : fibers) fiber->resume();
  run(engine);
  EXPECT_EQ(finished, 200);
  EXPECT_EQ(engine.now(), Picos(20 * 1000 + 199));
}

}  // namespace
}  // namespace verbscope::sim
