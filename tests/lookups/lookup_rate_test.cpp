// The program lookup_rate on small structures: its record and its errors. No time is checked, because the machine is
// noisy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::record_of;
using test::refusal_of;
using testing::HasSubstr;

Json quick(const std::string& options) {
  return record_of("lookup_rate -D 20ms --warmup 1ms --pages 4k " + options);
}

TEST(LookupRate, AllVariantsAgreeForEveryStructure) {
  for (const std::string structure : {"cuckoo -s 65536", "chain -s 65536 --depth 5", "lpm4", "mica -s 65536"}) {
    for (const std::string variant : {"baseline", "group", "interleaved"}) {
      const Json record = quick("--structure " + structure + " --batch 7 --variant " + variant);
      ASSERT_TRUE(record.contains("prediction")) << structure;
      EXPECT_GT(record.at("result").at("rate_mops").get<double>(), 0) << structure;
      EXPECT_GE(record.at("result").at("results_compared").get<int>(), 4096) << structure;
      EXPECT_GT(record.at("result").at("found_share").get<double>(), 0) << structure;
      EXPECT_EQ(record.at("environment").at("fabric"), "host");
      EXPECT_EQ(record.at("environment").at("simulated"), false);
    }
  }
}

// With 4 keys per bucket, half of the keys are in their second bucket.
TEST(LookupRate, CountsTheAccessesOfALookUp) {
  EXPECT_NEAR(quick("--structure cuckoo -s 1048576").at("result").at("accesses_per_lookup").get<double>(), 1.5, 0.05);
  EXPECT_EQ(quick("--structure chain -s 4096 --depth 9").at("result").at("accesses_per_lookup"), 9);
}

TEST(LookupRate, RejectsInvalidOptions) {
  EXPECT_THAT(refusal_of("lookup_rate --fabric sim:cx3"), HasSubstr("expected host"));
  EXPECT_THAT(refusal_of("lookup_rate --structure cuckoo -s 5000"), HasSubstr("--size 5000: expected a power of two"));
  EXPECT_THAT(refusal_of("lookup_rate --structure cuckoo --depth 3"), HasSubstr("--depth 3: only --structure chain"));
  EXPECT_THAT(refusal_of("lookup_rate --structure lpm6 -s 65536"), HasSubstr("--size 65536: too small"));
  EXPECT_THAT(refusal_of("lookup_rate --threads 4000"), HasSubstr("--threads 4000 is more than the"));
  EXPECT_THAT(refusal_of("lookup_rate --counter_sources nic"), HasSubstr("expected papi or none"));
  EXPECT_THAT(refusal_of("lookup_rate --batch 33"), HasSubstr("--batch"));
  EXPECT_THAT(refusal_of("send_rate --fabric host"), HasSubstr("--fabric: expected verbs, sim:NAME or null"));
}

}  // namespace
}  // namespace verbscope
