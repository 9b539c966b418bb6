// The programs from the command line: one line per mistake, the exit code, the record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "common/record.hpp"
#include "machine/threads.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::Ran;
using test::run_program;
using testing::HasSubstr;
using testing::Not;

struct Mistake {
  std::string arguments;
  std::string message;
  friend std::ostream& operator<<(std::ostream& out, const Mistake& m) { return out << m.arguments; }
};

class MistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsReportedInOneLineWithANonZeroExit) {
  const Ran ran = run_program("send_rate " + GetParam().arguments);
  EXPECT_NE(ran.exit_code, 0);
  EXPECT_EQ(ran.error_lines(), 1) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("send_rate: "));
  EXPECT_THAT(ran.err, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    , MistakeTest,
    testing::Values(Mistake{"--fabric null --sizes 8", "--sizes"}, Mistake{"--fabric null -s eight", "eight"},
                    Mistake{"--fabric null -c XRC", "XRC"}, Mistake{"--fabric nul", "got \"nul\""},
                    Mistake{"--fabric null -l 200",
                            "--post_list 200 is more than the send queue holds (--tx_depth 128)"},
                    Mistake{"--fabric null --header_only -s 8", "leave out --size 8"},
                    Mistake{"--fabric null --threads 4000", "--threads 4000 is more than the"},
                    Mistake{"--fabric null -c UD -s 9000", "over the MTU"}, Mistake{"--fabric null -I 5000", "inline"},
                    Mistake{"--fabric null -t 1000000", "1000000"},
                    Mistake{"--fabric null --out_json_file /nonexistent/x.json", "/nonexistent/x.json"},
                    Mistake{"--fabric null -D 5weeks", "5weeks"}, Mistake{"--fabric null --cores 99999", "99999"},
                    Mistake{"--fabric sim:nowhere", "nowhere"},
                    Mistake{"--fabric sim:cib -c UD --inline_recv 32", "inline receive of UD send"},
                    Mistake{"--fabric sim:cib localhost", "localhost"}));

TEST(Program, WritesARecordToStandardOutput) {
  const Ran ran = run_program("send_rate --fabric null -D 2ms --warmup 1ms --out_json_file -");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.own_errors(), "");
  const Record record = record_from_json(parse_json_text(ran.out, "output"), "output");
  EXPECT_EQ(record.benchmark, "send_rate");
  EXPECT_EQ(record.status, RecordStatus::ok);
  EXPECT_EQ(record.config.at("size"), 64);
  EXPECT_EQ(record.config.at("cq_mod"), 64);
  EXPECT_EQ(record.config.at("connection"), "RC");
  EXPECT_FALSE(record.environment.at("simulated").get<bool>());
  EXPECT_TRUE(record.environment.contains("server"));
}

// 64 QPs complete 64 SENDs of 4 KB at a time, so each completes every 2.6 ms, but warm-up and interval have 1 ms.
TEST(Program, ExtendsARunUntilEachQpHasCompleted) {
  const std::string line = "send_rate --fabric sim:cx3 -c UC -s 4096 -l 32 --threads 8 -q 8";
  const Ran lengthened = run_program(line);
  EXPECT_EQ(lengthened.exit_code, 0) << lengthened.err;
  EXPECT_THAT(lengthened.out, HasSubstr("not steady at first: this is interval "));
  const Record record =
      record_from_json(parse_json_text(run_program(line + " --out_json_file -").out, "record"), "record");
  const double rate = record.result.at("rate_mops");
  EXPECT_NEAR(rate, record.result.at("adapter_mops").get<double>(), 0.01 * rate);
  EXPECT_LE(rate, record.prediction.at("bound_mops").get<double>());
  EXPECT_THAT(run_program("send_rate --fabric sim:cx3 -s 64").out, Not(HasSubstr("not steady")));
}

TEST(Program, FailsAPointThatRunsOutOfTime) {
  const Ran ran = run_program("send_rate --fabric sim:cx3 -c UC -s 4096 -l 32 --threads 8 -q 8 --longest 5ms");
  EXPECT_EQ(ran.exit_code, 1) << ran.out;
  EXPECT_THAT(ran.err, HasSubstr("no rate within --longest 0.005 s"));
}

TEST(Program, AppendsToAFileAndPrintsASummary) {
  const TempDir folder;
  const std::string file = (folder / "r.jsonl").string();
  for (const char* program : {"send_rate", "recv_rate"}) {
    const Ran ran = run_program(std::string(program) + " --fabric null -D 2ms --warmup 1ms --out-json-file " + file);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("Mops"));
    EXPECT_THAT(ran.out, HasSubstr(std::string(program) + " on null"));
  }
  EXPECT_EQ(read_results(file).records.size(), 2u);
}

// 64 KiB are 65536 bytes of eight bits each.
TEST(Program, PrintsTheBandwidthOfLargeMessages) {
  const std::string line = "write_rate --fabric sim:cib -s 65536";
  const Record record =
      record_from_json(parse_json_text(run_program(line + " --out_json_file -").out, "record"), "record");
  const double rate = record.result.at("rate_mops");
  EXPECT_GT(rate, 0);
  EXPECT_NEAR(record.result.at("bandwidth_mb_per_s").get<double>(), rate * 65536, 1e-6 * rate * 65536);
  EXPECT_NEAR(record.result.at("bandwidth_gbit_per_s").get<double>(), rate * 1e6 * 65536 * 8 * 1e-9,
              1e-6 * rate * 65536);
  EXPECT_THAT(run_program(line).out,
              testing::AllOf(HasSubstr(" Gb/s, "), HasSubstr(" MB/s over "), Not(HasSubstr("0.000 "))));
  const Record latency = record_from_json(
      parse_json_text(run_program("verb_latency --fabric sim:cib --out_json_file -").out, "record"), "record");
  EXPECT_FALSE(latency.result.contains("bandwidth_mb_per_s"));
}

TEST(Program, WritesARecordOfAFailedRun) {
  const Ran ran = run_program("send_rate --fabric null -c UD -s 9000 --out_json_file -");
  EXPECT_NE(ran.exit_code, 0);
  const Record record = record_from_json(parse_json_text(ran.out, "output"), "output");
  EXPECT_EQ(record.status, RecordStatus::failed);
  EXPECT_THAT(record.reason, HasSubstr("over the MTU"));
  EXPECT_EQ(record.config.at("size"), 9000);
}

TEST(Program, DescribesItsOptions) {
  const Ran ran = run_program("recv_rate --describe");
  EXPECT_EQ(ran.exit_code, 0);
  const Json description = parse_json_text(ran.out, "output");
  EXPECT_EQ(description.at("benchmark"), "recv_rate");
  EXPECT_GT(description.at("options").size(), 20u);
}

TEST(Program, PrintsHelpAndNoErrorsInAGoodRun) {
  EXPECT_THAT(run_program("send_rate --help").out, HasSubstr("--post_list"));
  EXPECT_EQ(run_program("send_rate --help").exit_code, 0);
  EXPECT_EQ(run_program("send_rate --fabric null -D 1ms --warmup 1ms").own_errors(), "");
}

// Other tests run beside this one, and may hold the first core for a while, or all others.
TEST(Program, AvoidsACoreOfAnotherRun) {
  using namespace std::chrono_literals;
  const int first = allowed_cores().front();
  CoreClaims other_run;
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!other_run.claim(first)) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "another run held core " << first << " for a minute";
    std::this_thread::sleep_for(10ms);
  }
  const std::string run = "send_rate --fabric null -n 640 --warmup 0 --out_json_file - ";
  const Ran ran = run_program(run);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const Json thread = parse_json_text(ran.out, "output").at("result").at("threads")[0];
  if (thread.at("core") == first) {
    EXPECT_THAT(ran.err, HasSubstr("no other core is free"));
  }
  EXPECT_THAT(run_program(run + "--cores " + std::to_string(first)).err,
              HasSubstr("core " + std::to_string(first) + " is in use by another run"));
}

}  // namespace
}  // namespace verbscope
