// atomic_rate as a program on simulated clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::refusal_of;
using test::result_of;
using testing::HasSubstr;

TEST(AtomicRate, CountersSumUpToTheFetchAndAdds) {
  for (const char* options :
       {"-Z 1", "-Z 100 --threads 2 -q 3 --clients 3", "-Z 64 --addresses strided --stride 4096"}) {
    const Json result = result_of(std::string("atomic_rate --fabric sim:cib -D 100us --warmup 50us ") + options);
    EXPECT_EQ(result.at("lost"), 0);
    EXPECT_EQ(result.at("messages_expected"), result.at("messages_received"));
    EXPECT_GT(result.at("messages_received").get<int>(), 200);
  }
}

TEST(AtomicRate, CountersOfOneSlotAreNoFasterThanOneCounter) {
  const auto rate = [](const std::string& options) {
    return result_of("atomic_rate --fabric sim:cib -q 4 --threads 4 --clients 4 -D 200us --warmup 100us " + options)
        .at("rate_mops")
        .get<double>();
  };
  const double one = rate("-Z 1");
  EXPECT_NEAR(rate("-Z 64 --stride 4096"), one, 0.05 * one);  // the same twelve low bits
  EXPECT_GT(rate("-Z 64 --stride 8"), 5 * one);
}

TEST(AtomicRate, CountersSumUpToTheSuccessfulSwaps) {
  const Json result = result_of(
      "atomic_rate --fabric sim:cib --verb compare_swap -Z 10 --threads 2 --clients 2 -D 100us --warmup 20us");
  EXPECT_EQ(result.at("swaps_succeeded"), result.at("messages_received"));
  EXPECT_GT(result.at("swaps_tried").get<int>(), result.at("swaps_succeeded").get<int>());
}

Json slots_of(const std::string& fabric) {
  return result_of("atomic_rate --probe_slots --fabric " + fabric).at("lock_slots");
}

TEST(ProbeSlots, FindsTheSlotsOfTheClusters) {
  const Json cib = slots_of("sim:cib");
  EXPECT_EQ(cib.at("slots"), 4096);
  EXPECT_EQ(cib.at("slots_told_apart"), 512);
  EXPECT_EQ(cib.at("address_bits"), Json({3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_GT(cib.at("confidence").get<double>(), 0.95);
  const Json cx3 = slots_of("sim:cx3");
  EXPECT_EQ(cx3.at("slots"), 1);
  EXPECT_GT(cx3.at("confidence").get<double>(), 0.95);
}

TEST(ProbeSlots, FindsTheSlotsOfAChangedProfile) {
  const TempDir folder;
  const Json found =
      slots_of(test::changed_cluster(folder, {{"/nic/atomic_slots", 256}, {"/nic/atomic_slot_lowest_bit", 6}}));
  EXPECT_EQ(found.at("slots"), 256);
  EXPECT_EQ(found.at("address_bits"), Json({6, 7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(found.at("checked_pairs_agreed"), found.at("checked_pairs"));
}

TEST(ProbeSlots, RefusesOptionsThatItWouldIgnore) {
  for (const char* option :
       {"--events", "--threads 2", "--qp 3", "--clients 2", "--client_threads 2", "--warmup 1ms", "--validate"}) {
    EXPECT_THAT(refusal_of(std::string("atomic_rate --probe_slots --fabric sim:cib ") + option),
                HasSubstr(std::string(option).substr(0, std::string(option).find(' '))));
  }
}

}  // namespace
}  // namespace verbscope
