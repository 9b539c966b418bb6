// The check of histories: by hand, against all orders of small ones, and against the condition of Gibbons and Korach.
#include "systems/history/linearizable.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/systems/histories.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

bool accepted(const std::vector<HistoryEvent>& events) {
  return check_linearizable(events).linearizable();
}
// The only violation.
HistoryViolation violation(const std::vector<HistoryEvent>& events) {
  const HistoryCheck check = check_linearizable(events);
  EXPECT_EQ(check.violations.size(), 1u);
  return check.violations.empty() ? HistoryViolation{} : check.violations[0];
}

TEST(Linearizable, ConcurrentOperationsMayTakeEffectInEitherOrder) {
  EXPECT_TRUE(accepted({}));
  EXPECT_TRUE(accepted({get(kNoValue, 0, 5), put(7, 10, 20), get(7, 30, 40)}));
  EXPECT_TRUE(accepted({put(7, 10, 20), get(7, 15, 16)}));
  EXPECT_TRUE(accepted({put(7, 10, 20), get(kNoValue, 15, 16)}));
  EXPECT_TRUE(accepted({put(1, 0, 100), put(2, 0, 100), get(1, 10, 20), get(2, 30, 40)}));
  EXPECT_TRUE(accepted({put(1, 0, 100), put(2, 0, 100), get(2, 10, 20), get(1, 30, 40)}));
  EXPECT_FALSE(accepted({put(1, 0, 100), put(2, 0, 100), get(1, 10, 20), get(2, 30, 40), get(1, 50, 60)}));
}

TEST(Linearizable, EqualTimesAreConcurrent) {
  EXPECT_TRUE(accepted({put(1, 0, 10), put(2, 10, 20), get(1, 20, 30)}));
  EXPECT_FALSE(accepted({put(1, 0, 10), put(2, 11, 20), get(1, 21, 30)}));
}

TEST(Linearizable, APutWithoutAnAnswerTakesEffectOnceOrNever) {
  EXPECT_TRUE(accepted({put(1, 0, 10), put(2, 20, {}), get(1, 30, 40)}));
  EXPECT_TRUE(accepted({put(1, 0, 10), put(2, 20, {}), get(1, 30, 40), get(2, 50, 60)}));
  EXPECT_FALSE(accepted({put(1, 0, 10), put(2, 20, {}), get(2, 30, 40), get(1, 50, 60)}));
  EXPECT_FALSE(accepted({put(1, 0, 10), put(2, 20, {}), get(2, 30, 40), put(3, 50, 60), get(2, 70, 80)}));
  EXPECT_FALSE(accepted({put(2, 20, {}), get(2, 5, 10)}));
}

TEST(Linearizable, AGetWithoutAnAnswerSaysNothing) {
  EXPECT_TRUE(accepted({put(1, 0, 10), get(5, 20, {})}));
}

TEST(Linearizable, TwoPutsMayWriteTheSameValue) {
  EXPECT_TRUE(accepted({put(1, 0, 10), put(2, 20, 30), put(1, 25, 60), get(2, 31, 40), get(1, 50, 55)}));
  EXPECT_FALSE(accepted({put(1, 0, 10), put(2, 20, 30), get(2, 31, 40), get(1, 50, 55), put(1, 60, 70)}));
}

TEST(Linearizable, KeysAreIndependent) {
  HistoryEvent other = get(1, 50, 55);
  other.key = 2;
  const HistoryCheck check = check_linearizable(std::vector{put(1, 0, 10), other, put(2, 20, {}), get(1, 30, 40)});
  EXPECT_EQ(check.keys, 2u);
  EXPECT_EQ(check.clients, 1u);
  EXPECT_EQ(check.gets, 2u);
  EXPECT_EQ(check.puts, 2u);
  EXPECT_EQ(check.unknown, 1u);
  ASSERT_EQ(check.violations.size(), 1u);
  EXPECT_EQ(check.violations[0].get.key, 2u);
}

TEST(Linearizable, TellsAValueThatNobodyWrote) {
  const HistoryViolation never = violation({put(1, 0, 10), get(9, 20, 30)});
  EXPECT_EQ(never.kind, ViolationKind::unknown_value);
  EXPECT_THAT(never.text, AllOf(HasSubstr("key 1: unknown value"), HasSubstr("value 9")));
  EXPECT_EQ(violation({get(9, 20, 30), put(9, 40, 50)}).kind, ViolationKind::unknown_value);
}

// Between random phases on the same key, whose clients know nothing of the violation.
TEST(Linearizable, TellsPlantedViolationsByTheirKind) {
  struct Case {
    ViolationKind kind;
    const char* part;
    std::vector<HistoryEvent> events;
  };
  const std::vector<Case> cases{
      {ViolationKind::lost_put, "acknowledged PUT lost", {put(1, 1, 2), put(2, 3, 4), get(1, 5, 6)}},
      {ViolationKind::lost_put, "acknowledged PUT lost", {put(1, 1, 2), put(2, 3, 4), get(1, 5, 6), get(1, 7, 8)}},
      {ViolationKind::stale_read, "stale read", {put(1, 1, 2), put(2, 3, 4), get(1, 5, 6), get(2, 7, 8)}},
      {ViolationKind::stale_read,
       "stale read",
       {put(1, 1, 2), put(2, 3, 4), get(2, 5, 6), get(1, 7, 8), get(2, 9, 10)}},
      {ViolationKind::stale_read,
       "stale read",
       {put(1, 1, 2), put(2, 3, {}), get(2, 4, 5), get(1, 6, 7), get(2, 8, 9)}},
      {ViolationKind::put_applied_twice, "applied twice", {put(1, 1, 2), put(2, 3, 4), get(2, 5, 6), get(1, 7, 8)}},
      {ViolationKind::put_applied_twice,
       "applied twice",
       {put(1, 1, {}), get(1, 2, 3), put(2, 3, 4), get(2, 5, 6), get(1, 7, 8), get(1, 9, 10), put(3, 11, 12),
        get(3, 13, 14)}}};
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const Case& each : cases) {
      std::mt19937_64 random(seed);
      std::vector<HistoryEvent> events = register_history({.unknown_share = 0.05}, random);
      const std::vector<HistoryEvent> after = register_history({.put_share = 1, .begin = 2'000'000}, random);
      events.insert(events.end(), after.begin(), after.end());
      for (HistoryEvent event : each.events) {
        event.invoked += Nanos(1'000'000);
        if (event.completed) *event.completed += Nanos(1'000'000);
        events.push_back(event);
      }
      std::ranges::shuffle(events, random);
      const HistoryViolation found = violation(events);
      EXPECT_EQ(found.kind, each.kind) << found.text;
      EXPECT_THAT(found.text, AllOf(HasSubstr("key 1: "), HasSubstr(each.part)));
    }
  }
}

TEST(Linearizable, AKeyThatLosesItsOnlyValueHasLostThePut) {
  EXPECT_EQ(violation({put(1, 0, 10), get(kNoValue, 20, 30)}).kind, ViolationKind::lost_put);
  EXPECT_EQ(violation({put(1, 0, 10), get(1, 15, 17), get(kNoValue, 20, 30)}).kind, ViolationKind::lost_put);
}

TEST(Linearizable, AcceptsEveryHistoryOfARegister) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    const RegisterRun run{.clients = 1 + seed % 16,
                          .keys = 1 + seed % 3,
                          .operations = 200,
                          .put_share = 0.1 + 0.08 * static_cast<double>(seed % 11),
                          .unknown_share = seed % 4 == 0 ? 0.1 : 0,
                          .values = seed % 5 == 0 ? 1 + seed % 7 : 0};
    EXPECT_TRUE(accepted(register_history(run, random))) << "seed " << seed;
  }
}

// All orders that keep the order of time; PUTs without an answer may be left out.
bool some_order(const std::vector<HistoryEvent>& events, std::set<std::size_t> left, std::uint64_t value) {
  const auto end = [&](std::size_t i) { return events[i].completed.value_or(Nanos::max()); };
  if (std::ranges::none_of(left, [&](std::size_t i) { return events[i].completed.has_value(); })) return true;
  for (const std::size_t next : left) {
    if (std::ranges::any_of(left, [&](std::size_t other) { return end(other) < events[next].invoked; })) continue;
    const bool is_put = events[next].kind == OperationKind::put;
    if (!is_put && events[next].completed && events[next].value != value) continue;
    std::set<std::size_t> rest = left;
    rest.erase(next);
    if (some_order(events, rest, is_put ? events[next].value : value)) return true;
  }
  return false;
}

// Histories whose values are drawn at random, and histories of a register with one change.
TEST(Linearizable, HasTheVerdictOfAllOrders) {
  std::size_t good = 0;
  constexpr std::uint64_t kHistories = 100'000;
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<HistoryEvent> events = register_history({.clients = 1 + seed % 5,
                                                         .operations = 4 + seed % 6,
                                                         .put_share = 0.4,
                                                         .unknown_share = 0.15,
                                                         .values = seed % 3 == 0 ? 0 : 1 + seed % 4},
                                                        random);
    std::vector<std::uint64_t> values{kNoValue};
    for (const HistoryEvent& event : events) values.push_back(event.value);
    const std::uint64_t changes = 1 + seed % 4;
    for (std::uint64_t i = 0; i < changes; ++i) {
      HistoryEvent& event = events[random() % events.size()];
      if (event.kind == OperationKind::get) {
        event.value = values[random() % values.size()];
      } else if (event.completed) {
        *event.completed = event.invoked + (*event.completed - event.invoked) / 4;
      }
    }
    std::set<std::size_t> all;
    for (std::size_t i = 0; i < events.size(); ++i) all.insert(i);
    const bool expected = some_order(events, all, kNoValue);
    good += expected;
    ASSERT_EQ(accepted(events), expected) << "seed " << seed;
  }
  EXPECT_GT(good, kHistories / 5);
  EXPECT_LT(good, kHistories * 4 / 5);
}

// The condition of Gibbons and Korach for PUTs of different values: no two values each have an operation that completes
// before one of the other's is invoked, and no GET completes before its PUT is invoked.
bool zones_agree(const std::vector<HistoryEvent>& events) {
  struct Zone {
    Nanos first_completed = Nanos::max(), last_invoked = Nanos::min(), put = Nanos::max();
  };
  std::map<std::uint64_t, Zone> zones{{kNoValue, {Nanos::min(), Nanos::min(), Nanos::min()}}};
  for (const HistoryEvent& event : events) {
    Zone& zone = zones[event.value];
    const bool is_put = event.kind == OperationKind::put;
    if (is_put) zone.put = event.invoked;
    if (is_put || event.completed) zone.last_invoked = std::max(zone.last_invoked, event.invoked);
    if (event.completed) zone.first_completed = std::min(zone.first_completed, *event.completed);
  }
  for (const auto& [value, zone] : zones) {
    if (zone.first_completed < zone.put) return false;
    for (const auto& [other_value, other] : zones) {
      if (other_value != value && zone.first_completed < other.last_invoked &&
          other.first_completed < zone.last_invoked)
        return false;
    }
  }
  return true;
}

TEST(Linearizable, HasTheVerdictOfZonesWithSixteenClientsOnOneKey) {
  std::size_t good = 0;
  constexpr std::uint64_t kHistories = 1000;
  for (std::uint64_t seed = 0; seed < kHistories; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<HistoryEvent> events = register_history(
        {.clients = 16, .operations = 200, .put_share = 0.5, .unknown_share = seed % 2 == 0 ? 0.05 : 0}, random);
    HistoryEvent& changed = events[random() % events.size()];
    const HistoryEvent& other = events[random() % events.size()];
    if (changed.kind == OperationKind::get && changed.completed) changed.value = other.value;
    const bool expected = zones_agree(events);
    good += expected;
    ASSERT_EQ(accepted(events), expected) << "seed " << seed;
  }
  EXPECT_GT(good, kHistories / 4);
  EXPECT_LT(good, kHistories * 3 / 4);
}

// Seconds at most, also if each PUT is hidden and if values repeat.
TEST(Linearizable, ChecksLongHistories) {
  std::mt19937_64 random(1);
  for (const RegisterRun& run : {RegisterRun{.clients = 64, .keys = 1000, .operations = 100'000, .unknown_share = 0.01},
                                 RegisterRun{.clients = 16, .operations = 100'000, .unknown_share = 0.001},
                                 RegisterRun{.clients = 16, .operations = 100'000, .put_share = 0.99},
                                 RegisterRun{.clients = 16, .operations = 20'000, .values = 1000}}) {
    std::vector<HistoryEvent> events = register_history(run, random);
    EXPECT_TRUE(accepted(events));
    events.push_back(put(1, 100'000'000, 100'000'001));
    events.push_back(get(2, 100'000'002, 100'000'003));
    EXPECT_FALSE(accepted(events));
  }
}

TEST(Linearizable, RefusesMoreOrdersThanMemoryAllows) {
  std::vector<HistoryEvent> events;
  for (std::uint64_t value = 1; value <= 20; ++value) {  // each value: two PUTs, a GET now, and a GET at the end
    events.push_back(put(value, 0, 1000));
    events.push_back(put(value, 0, 1000));
    events.push_back(get(value, 1, 900));
    events.push_back(get(value, 1500, 2000));
  }
  events.push_back(put(100, 0, 10));
  events.push_back(get(100, 20, 30));
  try {
    check_linearizable(events);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("key 1: "), HasSubstr("equal values")));
  }
}

}  // namespace
}  // namespace verbscope
