#include "common/cli.hpp"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

Outcome run(std::vector<std::string> arguments, const std::function<int(int, char**)>& body) {
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  const int exit_code = run_main("prog", static_cast<int>(arguments.size()), argv.data(), body);
  std::string out = ::testing::internal::GetCapturedStdout();
  return {exit_code, std::move(out), ::testing::internal::GetCapturedStderr()};
}

// A program with one option.
int one_option(int argc, char** argv) {
  CLI::App app{"A test program"};
  int post_list = 1;
  app.add_option("-l,--post_list", post_list, "work requests per post");
  parse_args(app, argc, argv);
  fmt::print("{}\n", post_list);
  return 0;
}

TEST(RunMain, AcceptsDashAndUnderscore) {
  for (const auto& spelling : {"--post-list=7", "--post_list=7"}) {
    const Outcome outcome = run({"prog", spelling}, one_option);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out, "7\n");
    EXPECT_EQ(outcome.err, "");
  }
}

TEST(RunMain, NormalisesOnlyNamesBeforeTwoDashes) {
  std::vector<std::string> seen;
  run({"prog", "--a-b=c-d", "-x-y", "p-q", "--", "--e-f"}, [&](int argc, char** argv) {
    seen.assign(argv, argv + argc);
    return 0;
  });
  EXPECT_THAT(seen, ElementsAre("prog", "--a_b=c-d", "-x-y", "p-q", "--", "--e-f"));
}

TEST(RunMain, InterruptIsOneLineAndExitCode130) {
  const Outcome outcome = run({"prog"}, [](int, char**) -> int { throw InterruptedError("interrupted"); });
  EXPECT_EQ(outcome.exit_code, 130);
  EXPECT_EQ(outcome.err, "prog: interrupted\n");
}

TEST(RunMain, WrongUsageIsOneLineAndExitCode2) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"prog", "--nonsense"}, {"prog", "--post-list=x"}, {"prog", "--post-list"}}) {
    const Outcome outcome = run(arguments, one_option);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, ::testing::StartsWith("prog: "));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(RunMain, ErrorsAreOneLineAndTheirExitCode) {
  const Outcome failed = run({"prog"}, [](int, char**) -> int { fail("no device\nnamed mlx5_7"); });
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(failed.err, "prog: no device\\nnamed mlx5_7\n");
  const Outcome usage = run({"prog"}, [](int, char**) -> int { fail_usage("-s: 5000 is more than the MTU"); });
  EXPECT_EQ(usage.exit_code, 2);
  EXPECT_EQ(usage.err, "prog: -s: 5000 is more than the MTU\n");
  const Outcome other = run({"prog"}, [](int, char**) -> int { throw std::runtime_error("two\nlines"); });
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_EQ(other.err, "prog: two\\nlines\n");
  const Outcome file =
      run({"prog"}, [](int, char**) -> int { return std::filesystem::exists(std::string(5000, 'a')) ? 0 : 0; });
  EXPECT_EQ(file.exit_code, 1);
  EXPECT_EQ(file.err, "prog: cannot use \"" + std::string(60, 'a') + "...\": File name too long\n");
  EXPECT_EQ(run({"prog"}, [](int, char**) { return 1; }).exit_code, 1);
}

TEST(RunMain, RejectedValueIsWrongUsage) {
  const Outcome outcome = run({"prog", "-D", "1h"}, [](int argc, char** argv) {
    CLI::App app;
    Picos duration{};
    app.add_option_function<std::string>("-D", [&](const std::string& text) { duration = parse_duration(text, "-D"); });
    parse_args(app, argc, argv);
    return 0;
  });
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "prog: -D: \"1h\" has no unit of time (allowed: ps, ns, us, ms, s, min)\n");
}

TEST(RunMain, HelpAndVersionGoToStdoutAndSucceed) {
  const Outcome help = run({"prog", "--help"}, one_option);
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("--post_list"));
  EXPECT_EQ(help.err, "");
  const Outcome version = run({"prog", "--version"}, one_option);
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, ::testing::MatchesRegex("verbscope [0-9.]+ \\(.+\\)\n"));
}

TEST(RunMainDeath, UnwritableOutputIsAFailure) {
  const auto print_to_a_full_disk = [] {
    if (std::freopen("/dev/full", "w", stdout) == nullptr) std::exit(99);
    char name[] = "prog";
    char* argv[] = {name, nullptr};
    std::exit(run_main("prog", 1, argv, one_option));
  };
  EXPECT_EXIT(print_to_a_full_disk(), ::testing::ExitedWithCode(1),
              "prog: cannot write to standard output: No space left on device");
}

TEST(Duration, AcceptsUnitsAndPlainSeconds) {
  EXPECT_EQ(parse_duration("2ms", "-D"), Picos(2'000'000'000));
  EXPECT_EQ(parse_duration("500us", "-D"), Picos(500'000'000));
  EXPECT_EQ(parse_duration("3", "-D"), Picos(3'000'000'000'000));
  EXPECT_EQ(parse_duration("0.1s", "-D"), Picos(100'000'000'000));
  EXPECT_EQ(parse_duration("1.5ns", "-D"), Picos(1500));
  EXPECT_EQ(parse_duration("7ps", "-D"), Picos(7));
  EXPECT_EQ(parse_duration("2min", "-D"), Picos(120'000'000'000'000));
  EXPECT_EQ(parse_duration("0", "-D"), Picos(0));
}

TEST(Duration, RejectsOtherTextAndNamesTheOption) {
  for (const char* text : {"", "ms", "-1s", "inf", "nan", "1h", "2 ms", "1s1", "+1", "107000000s", "1e300"}) {
    EXPECT_THAT(message_of<UsageError>([&] { parse_duration(text, "--warmup"); }), ::testing::StartsWith("--warmup: "));
  }
}

}  // namespace
}  // namespace verbscope
