// Programs that measure more than one interval: one per payload (--all), or without end (--run_infinitely).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::record_of;
using test::records_of;
using test::refusal_of;
using testing::HasSubstr;

class AllSizes : public testing::TestWithParam<std::string> {};

// A simulated rate is the same in every run, so each point equals a run of that size alone.
TEST_P(AllSizes, EqualTheRunsOfEachSizeAlone) {
  const std::string run = GetParam() + " --fabric sim:cib -D 100us --warmup 50us";
  const std::vector<Json> records = records_of(run + " -a -s 48");
  std::vector<std::uint32_t> sizes;
  for (const Json& record : records) {
    sizes.push_back(record.at("config").at("size"));
    EXPECT_EQ(record.at("config").at("all"), true);
    EXPECT_EQ(record.at("result"), record_of(run + " -s " + std::to_string(sizes.back())).at("result"));
  }
  EXPECT_THAT(sizes, testing::ElementsAre(2, 4, 8, 16, 32, 48));
}

INSTANTIATE_TEST_SUITE_P(, AllSizes,
                         testing::Values("send_rate", "recv_rate -c UD", "write_rate", "read_rate --direction in",
                                         "write_rate -b"));

TEST(AllSizesOnNull, EndAtTheLastSizeOfPerftest) {
  const std::vector<Json> records = records_of("write_rate -a --fabric null -n 640 --warmup 0");
  ASSERT_EQ(records.size(), 23u);
  EXPECT_EQ(records.back().at("config").at("size"), 1 << 23);
  EXPECT_EQ(records.back().at("config").at("cq_mod"), 1);
  EXPECT_GT(records.front().at("config").at("cq_mod"), 1);
}

TEST(AllSizesAre, RefusedWithoutAFirstOrLastSize) {
  for (const auto& [line, says] : {std::pair("-c UD", "--size, at most the MTU"),
                                   {"--header_only", "there is one size"},
                                   {"-s 1", "begins with 2 bytes"},
                                   {"--run_infinitely", "would never end"}}) {
    EXPECT_THAT(refusal_of(std::string("send_rate -a --fabric sim:cib ") + line), HasSubstr(says));
  }
}

// The first lines of a program that runs until its reader closes the pipe.
std::vector<std::string> first_lines(const std::string& command, std::size_t count) {
  std::FILE* const pipe = ::popen((VERBSCOPE_BINARY_DIR "/bin/" + command + " 2>/dev/null").c_str(), "r");
  std::vector<std::string> lines;
  char line[256];
  while (lines.size() < count && std::fgets(line, sizeof line, pipe) != nullptr) lines.emplace_back(line);
  EXPECT_NE(::pclose(pipe), 0) << command;
  EXPECT_EQ(lines.size(), count) << command;
  return lines;
}

TEST(RunInfinitely, PrintsTheRateOfEachInterval) {
  for (const char* program : {"send_rate", "recv_rate -c UD", "read_rate --direction in", "send_rate -b"}) {
    const std::string run = std::string(program) + " --fabric sim:cib --warmup 1ms -D 1ms";
    const double whole = record_of(run).at("result").at("rate_mops");
    const std::vector<std::string> lines = first_lines(run + " --run_infinitely", 4);
    for (const std::string& line : lines) {
      EXPECT_NEAR(std::stod(line), whole, 0.05 * whole) << program << ": " << line;
      EXPECT_THAT(line, HasSubstr("simulated Mops"));
      EXPECT_THAT(line, HasSubstr("over 0.001 simulated s"));
    }
  }
}

TEST(RunInfinitely, RunsInRealTimeToo) {
  for (const std::string& line : first_lines("send_rate --fabric null --warmup 1ms -D 20ms --run_infinitely", 4)) {
    EXPECT_THAT(line, HasSubstr(" Mops"));
  }
}

TEST(RunInfinitely, IsRefusedWithOptionsThatEndTheRun) {
  for (const auto& [line, says] : {std::pair("-n 64", "exclude each other"),
                                   {"--out_json_file -", "has no record"},
                                   {"-y 1", "--limit_msgrate"}}) {
    EXPECT_THAT(refusal_of(std::string("send_rate --run_infinitely --fabric sim:cib ") + line), HasSubstr(says));
  }
}

}  // namespace
}  // namespace verbscope
