// kv_atomic as a program on simulated clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Json kv_record(const std::string& options) {
  return test::record_of("kv_atomic " + options);
}

// A busy server: as many QPs as keep its units at work.
Json busy(const std::string& cluster, const std::string& options) {
  return kv_record("--fabric sim:" + cluster + " --threads 8 -q 8 --pages 2m -D 200us --warmup 200us " + options);
}
double kv_mops(const Json& record) {
  return record.at("result").at("rate_mops").get<double>();
}
std::uint64_t count(const Json& record, const char* key) {
  return record.at("result").value(key, ~0ull);
}

TEST(Kv, ReturnsEveryValueAsItWasPut) {
  for (const std::string options :
       {"-q 4 --put_percent 50", "-q 4 --put_percent 100 --keys 1",
        "-q 4 --put_percent 30 -s 16 --locks same --keys 10",
        "-q 4 --clients 2 --put_percent 70 -s 8192 --locks apart --keys 5",
        "-q 3 --clients 3 --threads 2 --put_percent 60 -s 4088", "--put_percent 50 -I 64 --wr_api",
        "--put_percent 50 -e", "-q 4 --put_percent 100 --emulate --keys 20", "-q 4 --put_percent 50 --window 1",
        "-q 4 --put_percent 50 -t 4"}) {
    const Json record = kv_record("--fabric sim:cib --warmup 50us -D 200us " + options);
    EXPECT_EQ(count(record, "violations"), 0u) << options;
    EXPECT_EQ(count(record, "records_locked"), 0u) << options;
    EXPECT_EQ(count(record, "records_inconsistent"), 0u) << options;
    EXPECT_EQ(count(record, "puts_in_records"), count(record, "puts")) << options;
    EXPECT_EQ(count(record, "tickets_skipped"), 0u) << options;
    EXPECT_GT(count(record, "puts"), 50u) << options;
    EXPECT_EQ(record.at("result").at("validation").at("wrong"), 0) << options;
  }
}

TEST(Kv, TheRecordHasTheWindowThatTheRunHad) {
  const auto window = [](const std::string& options) {
    return kv_record("--fabric sim:cib --warmup 20us -D 50us " + options).at("config").at("window");
  };
  EXPECT_EQ(window(""), 8);
  EXPECT_EQ(window("-t 4"), 4);
  EXPECT_EQ(window("-t 128 --window 128"), 128);
}

TEST(Kv, MeasuresGetsAndPutsApart) {
  const Json result = busy("cib", "--put_percent 25 --keys 65536").at("result");
  EXPECT_NEAR(result.at("get_mops").get<double>() + result.at("put_mops").get<double>(),
              result.at("rate_mops").get<double>(), 1e-6);
  EXPECT_EQ(result.at("get_ops").get<std::uint64_t>() + result.at("put_ops").get<std::uint64_t>(),
            result.at("ops").get<std::uint64_t>());
  EXPECT_EQ(result.at("get_lat_samples"), result.at("get_ops"));
  EXPECT_EQ(result.at("put_lat_samples"), result.at("put_ops"));
  const double puts = result.at("put_ops").get<double>(), all = result.at("ops").get<double>();
  EXPECT_NEAR(puts / all, 0.25, 0.03);
  // Three trips in two steps against one.
  EXPECT_GT(result.at("put_lat_p50_ns").get<double>(), 1.5 * result.at("get_lat_p50_ns").get<double>());
}

TEST(Kv, ExactlyTheItersAreMeasured) {
  const Json record = kv_record("--fabric sim:cib -q 3 --clients 3 --put_percent 50 -n 500");
  EXPECT_EQ(count(record, "ops"), 1500u);
}

TEST(Kv, PollsTakenLocksAgain) {
  const Json record = kv_record("--fabric sim:cib --threads 2 -q 4 --put_percent 100 --keys 4");
  EXPECT_GT(count(record, "lock_retries"), 100u);
}

TEST(Kv, ValuesOfSeveralPacketsAreSeenTornAndReadAgain) {
  // The largest packet has 4096 bytes: a READ that falls between two of a WRITE finds both versions.
  const Json record = kv_record("--fabric sim:cib --threads 2 -q 2 --put_percent 50 --keys 2 -s 16384 -D 3ms");
  EXPECT_GT(count(record, "torn_reads"), 0u);
}

// Kalia et al., ATC 2016, section 4.3.2: the degradation is more gradual where the adapter has many lock slots.
TEST(Kv, PutsHurtTheAdapterWithOneLockSlotFarMore) {
  for (const char* kind : {"", " --emulate"}) {
    const auto left = [&](const std::string& cluster, const std::string& percent) {
      return kv_mops(busy(cluster, "--put_percent " + percent + kind)) / kv_mops(busy(cluster, "--put_percent 0"));
    };
    EXPECT_LT(2 * left("cx3", "50"), left("cib", "50")) << kind;
    EXPECT_LT(2 * left("cx3", "100"), left("cib", "100")) << kind;
  }
}

// Section 5.4: locks at the same offset of page-aligned records have the same 12 low bits of the address.
TEST(Kv, LocksAtOneOffsetCollapseWhereThePlacementMatters) {
  const Json hashed = busy("cib", "--put_percent 100"), apart = busy("cib", "--put_percent 100 --locks apart");
  EXPECT_NEAR(kv_mops(hashed) / kv_mops(apart), 1, 0.1);
  // One slot serves one atomic at a time, and a PUT has two: half the rate of one counter. Both with the same QPs and
  // in a window that is long against a PUT of half a millisecond.
  const std::string steady = "--fabric sim:cib --threads 8 -q 8 --warmup 1ms -D 2ms ";
  const double same = kv_mops(kv_record(steady + "--put_percent 100 --locks same"));
  const test::Ran one = test::run_program("atomic_rate -Z 1 --out_json_file - " + steady);
  const double counter = parse_json_text(one.out, "atomic_rate").at("result").at("rate_mops");
  EXPECT_NEAR(same, counter / 2, 0.05 * counter / 2);
  EXPECT_LT(5 * same, kv_mops(hashed));
}

TEST(Kv, TheRecordNamesTheCollisionsOfLockSlots) {
  const Json same = busy("cib", "--put_percent 100 --locks same").at("result");
  const Json apart = busy("cib", "--put_percent 100 --locks apart").at("result");
  EXPECT_EQ(same.at("lock_slots"), Json({{"assumed", 4096}, {"assumed_address_bits", {0, 11}}, {"reached", 1}}));
  EXPECT_EQ(apart.at("lock_slots").at("reached"), 512);
  EXPECT_GT(same.at("atomic_slot_waits_per_op").get<double>(), 1);
  EXPECT_LT(apart.at("atomic_slot_waits_per_op").get<double>(), 0.2);
  EXPECT_GT(same.at("atomic_slot_wait_ns_per_op").get<double>(),
            100 * apart.at("atomic_slot_wait_ns_per_op").get<double>());
  const test::Ran ran = test::run_program("kv_atomic --fabric sim:cib --put_percent 50 --locks same -D 100us");
  EXPECT_THAT(ran.out, HasSubstr("the locks reach 1 of 4096 lock slots"));
  EXPECT_THAT(ran.out, HasSubstr("waits for a lock slot: "));
}

std::string kv_refusal(const std::string& options) {
  const test::Ran ran = test::run_program("kv_atomic --fabric sim:cib " + options);
  EXPECT_EQ(ran.exit_code, 2) << options << ": " << ran.out;
  EXPECT_EQ(ran.error_lines(), 1) << ran.err;
  return ran.err;
}

TEST(Kv, RejectsInvalidOptions) {
  EXPECT_THAT(kv_refusal("--put_percent 101"), HasSubstr("--put_percent"));
  EXPECT_THAT(kv_refusal("--keys 0"), HasSubstr("--keys"));
  EXPECT_THAT(kv_refusal("--locks near"), HasSubstr("--locks: expected same, hashed or apart"));
  EXPECT_THAT(kv_refusal("--window 0"), HasSubstr("--window"));
  EXPECT_THAT(kv_refusal("--window 129"), AllOf(HasSubstr("--window 129"), HasSubstr("--tx_depth 128")));
  EXPECT_THAT(kv_refusal("--lease 0"), HasSubstr("--lease 0: expected a time above 0"));
  EXPECT_THAT(kv_refusal("--lease soon"), HasSubstr("--lease"));
  EXPECT_THAT(kv_refusal("--pages 1g"), HasSubstr("--pages: expected 4k or 2m"));
  EXPECT_THAT(kv_refusal("-s 20"), HasSubstr("--size 20: a value is a multiple of 8 bytes, at least 16"));
  EXPECT_THAT(kv_refusal("-s 8"), HasSubstr("--size 8"));
  EXPECT_THAT(kv_refusal("-c UC"), HasSubstr("--connection UC"));
  EXPECT_THAT(kv_refusal("-l 2"), HasSubstr("--post_list 2"));
  EXPECT_THAT(kv_refusal("-Q 2"), HasSubstr("--cq_mod 2"));
  EXPECT_THAT(kv_refusal("--header_only"), HasSubstr("--header_only"));
}

}  // namespace
}  // namespace verbscope
