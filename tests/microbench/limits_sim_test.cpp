// What a rate must reach, and the options that a command line of perftest has without effect here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/temp_dir.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::Ran;
using test::record_of;
using test::refusal_of;
using test::run_program;
using testing::HasSubstr;

constexpr const char* kRun = "write_rate --fabric sim:cib --warmup 20us -s 4096 -q 2 ";

// A simulated rate is the same in every run, so limits a little below and above it also check the unit.
TEST(Limits, PassBelowTheRateAndFailAboveIt) {
  const Json result = record_of(kRun).at("result");
  const double bytes_per_s = result.at("rate_mops").get<double>() * 1e6 * 4096;
  const auto run = [](const std::string& option, double limit) {
    return run_program(fmt::format("{} {} {}", kRun, option, limit));
  };
  struct Limit {
    std::string option;
    double reached;
    std::string says;
  };
  for (const auto& [option, reached, says] :
       {Limit{"--limit_bw", bytes_per_s / (1 << 20), "MiB/s is below --limit_bw"},
        Limit{"--report_gbits -w", bytes_per_s * 8 / 1e9, "Gb/s is below --limit_bw"},
        Limit{"-y", result.at("rate_mops").get<double>(), "Mops is below --limit_msgrate"}}) {
    EXPECT_EQ(run(option, reached * 0.999).exit_code, 0) << option;
    const Ran failed = run(option, reached * 1.001);
    EXPECT_EQ(failed.exit_code, 1) << option;
    EXPECT_THAT(failed.err, HasSubstr(says));
  }
}

TEST(Limits, AMissedLimitIsAFailedRecordWithTheRate) {
  const Ran ran = run_program(std::string(kRun) + "-y 1e6 --out_json_file -");
  EXPECT_EQ(ran.exit_code, 1);
  const Json record = parse_json_text(ran.out, "output");
  EXPECT_EQ(record.at("status"), "failed");
  EXPECT_THAT(record.at("reason").get<std::string>(), HasSubstr("is below --limit_msgrate 1e+06"));
  EXPECT_GT(record.at("result").at("rate_mops"), 0);
}

TEST(Limits, AreRefusedWithoutABandwidth) {
  EXPECT_THAT(refusal_of("verb_latency --fabric sim:cib -w 5"), HasSubstr("verb_latency has no bandwidth"));
  EXPECT_THAT(refusal_of("send_rate --fabric sim:cib -w 5 --header_only"), HasSubstr("without a payload"));
  EXPECT_EQ(run_program("send_rate --fabric sim:cib --report_gbits").exit_code, 0);  // both units are always printed
  for (const char* limit : {"0", "-1", "nan", "inf", "5x", "''"}) {
    EXPECT_THAT(refusal_of(std::string("send_rate --fabric sim:cib -y ") + limit), HasSubstr("a number above 0"));
  }
}

// On any fabric; a latency has a result of one (latency_sim_test.cpp).
TEST(Limits, OneOperationHasNoRate) {
  for (const char* fabric : {"null", "sim:cib"}) {
    const Ran ran = run_program(fmt::format("write_rate --fabric {} -n 1", fabric));
    EXPECT_EQ(ran.exit_code, 1) << fabric;
    EXPECT_THAT(ran.err, testing::AnyOf(HasSubstr("one operation has no rate"), HasSubstr("1 operations are")))
        << fabric;
  }
}

// 83 SENDs outstanding on 20 RECVs, both ways.
TEST(Limits, AnUnsteadyRateIsReportedWithItsRnrNaks) {
  const Ran ran = run_program("send_rate --fabric sim:cx6 -s 2 -b -t 83 -r 20");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_THAT(ran.err, HasSubstr("the rate was not steady"));
  EXPECT_THAT(ran.err, AllOf(HasSubstr("RNR NAKs"), HasSubstr("--rx_depth")));
}

TEST(PerftestOptions, WithoutEffectAreAcceptedAndInTheRecord) {
  const Json with = record_of(std::string(kRun) + "-F -N");
  const Json without = record_of(kRun);
  EXPECT_EQ(with.at("result"), without.at("result"));
  EXPECT_EQ(with.at("config").at("CPU_freq"), true);
  EXPECT_EQ(with.at("config").at("noPeak"), true);
  EXPECT_EQ(run_program(std::string(kRun) + "--CPU-freq --noPeak").exit_code, 0);
}

TEST(PerftestOptions, VersionIsPrinted) {
  const Ran ran = run_program("send_rate -V");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, HasSubstr("verbscope "));
  EXPECT_EQ(run_program("send_rate --version").out, ran.out);
}

TEST(PerftestOptions, AtomicTypeSetsTheVerb) {
  const std::string run = "atomic_rate --fabric sim:cib -n 64 ";
  EXPECT_EQ(record_of(run + "-A CMP_AND_SWAP").at("result"), record_of(run + "--verb compare_swap").at("result"));
  const Json config = record_of(run + "--verb compare_swap").at("config");
  EXPECT_EQ(config.at("atomic_type"), "CMP_AND_SWAP");
  EXPECT_EQ(record_of(run + "-A CMP_AND_SWAP --verb compare_swap").at("config"), config);
  EXPECT_THAT(refusal_of(run + "-A FETCH_AND_ADD --verb compare_swap"),
              AllOf(HasSubstr("--atomic_type"), HasSubstr("--verb")));
}

}  // namespace
}  // namespace verbscope
