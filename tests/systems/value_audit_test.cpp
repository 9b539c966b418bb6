// The account of received values: each once, and none from elsewhere.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "common/error.hpp"
#include "common/hash.hpp"
#include "systems/sequencer/receipts.hpp"

namespace verbscope {
namespace {

constexpr std::uint64_t kFirst = (std::uint64_t{1} << 32) - 3;

TEST(ValueAudit, RejectsRepeatedValuesAndValuesOutside) {
  ValueAudit audit(kFirst);
  EXPECT_TRUE(audit.note(kFirst));
  EXPECT_TRUE(audit.note(kFirst + 100));
  EXPECT_FALSE(audit.note(kFirst + 100));
  EXPECT_FALSE(audit.note(kFirst - 1));
  EXPECT_FALSE(audit.note(kFirst + ValueAudit::kCapacity));
  EXPECT_TRUE(audit.note(kFirst + ValueAudit::kCapacity - 1));
}

TEST(ValueAudit, CountsThoseBelowALimit) {
  ValueAudit audit(0);
  for (const std::uint64_t value : {0u, 1u, 63u, 64u, 130u}) audit.note(value);
  EXPECT_EQ(audit.noted(1), 1u);
  EXPECT_EQ(audit.noted(64), 3u);
  EXPECT_EQ(audit.noted(65), 4u);
  EXPECT_EQ(audit.noted(130), 4u);
  EXPECT_EQ(audit.noted(131), 5u);
}

TEST(ValueAudit, MergesTheValuesOfAnotherProcess) {
  ValueAudit here(kFirst), there(kFirst);
  for (std::uint64_t i = 0; i < 200; i += 3) here.note(kFirst + i);
  for (std::uint64_t i = 1; i < 200; i += 3) there.note(kFirst + i);
  there.note(kFirst);  // `here` has it as well
  EXPECT_EQ(here.merge(there.pack(200), "there"), 1u);
  EXPECT_EQ(here.noted(200), 67u + 67u);
  EXPECT_FALSE(here.note(kFirst + 1));
  EXPECT_TRUE(here.note(kFirst + 2));
  EXPECT_THROW(here.merge("12x", "there"), Error);
}

TEST(ValueAudit, ThreadsOfAProcessShareOne) {
  ValueAudit audit(0);
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t value = 0; value < 1000; ++value) taken += audit.note(value) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 1000);
  EXPECT_EQ(audit.noted(1000), 1000u);
}

TEST(Fingerprint, DiffersBetweenSets) {
  std::uint64_t sum = 0;
  for (const std::uint64_t value : {12u, 10u, 11u}) sum += mix(value);
  EXPECT_EQ(sum, fingerprint_of_range(10, 3));
  EXPECT_NE(mix(10) + mix(10) + mix(13), fingerprint_of_range(10, 3));  // of the same sum
}

TEST(Receipts, AValueIsAboveAllThatItsClientHadWhenItAsked) {
  ValueAudit audit(100);
  Receipts receipts(audit);
  Asked early;
  receipts.ask(early, Picos(0));
  receipts.take(105, early, Picos(10), true);
  EXPECT_EQ(receipts.next, 106u);
  receipts.take(103, early, Picos(10), true);  // asked at the same time: the order is free
  EXPECT_EQ(receipts.disordered, 0u);
  Asked late;
  receipts.ask(late, Picos(5));
  receipts.take(104, late, Picos(10), true);
  EXPECT_EQ(receipts.disordered, 1u);
  receipts.take(103, early, Picos(10), false);
  EXPECT_EQ(receipts.repeated, 1u);
  EXPECT_EQ(receipts.answers, 4u);
  EXPECT_EQ(receipts.latency.count(), 3u);  // those in the measured window
}

}  // namespace
}  // namespace verbscope
