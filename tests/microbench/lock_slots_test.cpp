// The survey of lock slots on invented NICs: each maps addresses in its own way and gives the rates of that mapping.
// The survey must find the mapping.
#include "microbench/atomic/lock_slots.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = SlotMeasurement::Kind;

constexpr std::uint32_t kRegionBits = 20;

// A NIC that holds a slot for 446 ns (Connect-IB) and whose rates scatter by `noise` (a share of the rate).
struct MadeUpNic {
  std::function<std::uint64_t(std::uint64_t)> slot;
  double noise = 0.01;
  double reads = 16e6;
  double solo = 1;  // of the rate on one slot

  double rate(const SlotMeasurement& question) {
    const double one = 1e9 / 446;
    double exact = one;
    if (question.kind == Kind::reads) exact = reads;
    if (question.kind == Kind::solo) exact = one * solo;
    if (question.kind == Kind::pair && slot(question.first) != slot(question.second)) exact = 2 * one;
    return exact * (1 + std::normal_distribution<double>(0, noise)(random));
  }

  std::mt19937_64 random{11};
};

SlotFindings survey(MadeUpNic nic) {
  SlotSurvey survey(kRegionBits, 5);
  int questions = 0;
  while (const auto question = survey.next()) {
    EXPECT_LT(question->first | question->second, 1u << kRegionBits);
    EXPECT_EQ((question->first | question->second) % 8, 0u);
    survey.add_rate(nic.rate(*question));
    EXPECT_LT(++questions, 2000);
  }
  return survey.findings();
}

TEST(LockSlots, FindsTheTwelveLowBitsOfConnectIb) {
  const SlotFindings found = survey({.slot = [](std::uint64_t a) { return a % 4096; }});
  EXPECT_EQ(found.inconclusive, "");
  EXPECT_THAT(found.bits, ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(found.distinguished, 512u);
  EXPECT_TRUE(found.low_bits_assumed);
  EXPECT_EQ(found.slots, 4096u);
  EXPECT_EQ(found.agreed, found.pairs);
  EXPECT_GT(found.confidence, 0.95);
  EXPECT_NEAR(found.apart.mean() / found.shared.mean(), 2, 0.02);
}

TEST(LockSlots, FindsTheOneSlotOfConnectX3) {
  const SlotFindings found = survey({.slot = [](std::uint64_t) { return 0; }});
  EXPECT_THAT(found.bits, IsEmpty());
  EXPECT_EQ(found.slots, 1u);
  EXPECT_EQ(found.apart.count(), 0u);
  EXPECT_GT(found.confidence, 0.95);
}

TEST(LockSlots, FindsARangeThatBeginsAboveBitThree) {
  const SlotFindings found = survey({.slot = [](std::uint64_t a) { return a >> 6 & 255; }});
  EXPECT_THAT(found.bits, ElementsAre(6, 7, 8, 9, 10, 11, 12, 13));
  EXPECT_EQ(found.slots, 256u);
  EXPECT_FALSE(found.low_bits_assumed);
}

TEST(LockSlots, FindsBitsThatAreNotAdjacent) {
  const SlotFindings found = survey({.slot = [](std::uint64_t a) { return a & 0x10220; }});
  EXPECT_THAT(found.bits, ElementsAre(5, 9, 16));
  EXPECT_EQ(found.slots, 8u);
}

TEST(LockSlots, FindsFoldedBits) {
  // Bits 3 to 7 exclusive-or bits 12 to 16: ten bits matter, and there are 32 slots.
  const SlotFindings found = survey({.slot = [](std::uint64_t a) { return (a >> 3 ^ a >> 12) & 31; }});
  EXPECT_EQ(found.bits.size(), 10u);
  EXPECT_EQ(found.distinguished, 32u);
  EXPECT_THAT(found.folded, ElementsAre(1u << 3 | 1u << 12, 1u << 4 | 1u << 13, 1u << 5 | 1u << 14, 1u << 6 | 1u << 15,
                                        1u << 7 | 1u << 16));
  EXPECT_EQ(found.agreed, found.pairs);
}

TEST(LockSlots, HasALowerConfidenceForAnotherKindOfMapping) {
  // A multiplicative hash to 16 slots: which bits matter depends on the others.
  const SlotFindings found = survey({.slot = [](std::uint64_t a) { return (a / 8 * 0x9e3779b97f4a7c15u) >> 60; }});
  EXPECT_LT(found.agreed, found.pairs);
  EXPECT_LT(found.confidence, 0.95);
}

TEST(LockSlots, HasALowerConfidenceIfRatesScatter) {
  const MadeUpNic nic{.slot = [](std::uint64_t a) { return a % 4096; }, .noise = 0.15};
  const SlotFindings found = survey(nic);
  EXPECT_LT(found.confidence, 0.95);
  EXPECT_GT(found.mistaken, 0.001);
}

TEST(LockSlots, IsInconclusiveIfReadsAreNoFaster) {
  const SlotFindings found = survey({.slot = [](std::uint64_t) { return 0; }, .reads = 2.5e6});
  EXPECT_THAT(found.inconclusive, HasSubstr("something other than a lock"));
  EXPECT_EQ(found.confidence, 0);
  EXPECT_THAT(slots_text(slots_json(found)), HasSubstr("inconclusive"));
}

TEST(LockSlots, IsInconclusiveIfOneQueueLeavesTheSlotIdle) {
  EXPECT_THAT(survey({.slot = [](std::uint64_t) { return 0; }, .solo = 0.5}).inconclusive,
              HasSubstr("does not keep a slot busy"));
}

TEST(LockSlots, IsInconclusiveBeforeTheSurveyIsComplete) {
  EXPECT_EQ(SlotSurvey(kRegionBits, 1).findings().inconclusive, "the survey was not finished");
}

TEST(LockSlots, WritesTheFindingsToRecordAndConsole) {
  const Json json = slots_json(survey({.slot = [](std::uint64_t a) { return a % 4096; }}));
  EXPECT_EQ(json.at("slots"), 4096);
  EXPECT_EQ(json.at("slots_told_apart"), 512);
  EXPECT_THAT(slots_text(json), HasSubstr("address bits 3 to 11 distinguish 512 slots"));
  EXPECT_THAT(slots_text(json), HasSubstr("4096 slots"));
  EXPECT_THAT(slots_text(slots_json(survey({.slot = [](std::uint64_t) { return 0; }}))), HasSubstr("1 slot"));
}

TEST(LockSlots, PrintsTheHighestExaminedBit) {
  // 256 slots on bits 14 to 21; the survey examines the lower six of these bits.
  const Json json = slots_json(survey({.slot = [](std::uint64_t a) { return a >> 14 & 255; }}));
  EXPECT_EQ(json.at("slots"), 64);
  EXPECT_EQ(json.at("highest_bit_examined"), kRegionBits - 1);
  EXPECT_THAT(slots_text(json), HasSubstr("bits above 19 were not examined, so there may be more slots"));
  const std::string whole = slots_text(slots_json(survey({.slot = [](std::uint64_t a) { return a % 4096; }})));
  EXPECT_THAT(whole, HasSubstr("bits above 19 were not examined\n"));
}

TEST(MaskSpace, ContainsTheSumsOfItsMasks) {
  MaskSpace space;
  space.add(0b0011);
  space.add(0b0110);
  space.add(0b0101);  // the sum of the two
  EXPECT_EQ(space.dimension(), 2u);
  EXPECT_TRUE(space.contains(0b0101));
  EXPECT_FALSE(space.contains(0b0001));
  EXPECT_EQ(space.combine(0b11), 0b0101u);
}

TEST(RunningMean, AgreesWithTheDefinition) {
  RunningMean mean;
  for (const double value : {2.0, 4.0, 9.0}) mean.add(value);
  EXPECT_DOUBLE_EQ(mean.mean(), 5);
  EXPECT_DOUBLE_EQ(mean.deviation(), std::sqrt((9.0 + 1 + 16) / 2));
}

}  // namespace
}  // namespace verbscope
