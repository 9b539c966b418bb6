// A tool as a child process: its lines arrive at once, and it ends on request and with the process that started it.
#include "counters/tool_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "common/error.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

ToolProcess shell(const std::string& script) {
  return ToolProcess({"sh", "-c", script});
}

// All output until the process ends, for at most a minute.
std::string all_of(ToolProcess& process) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  std::string text;
  while (process.running() && std::chrono::steady_clock::now() < deadline) text += process.read(-1, 1000ms);
  EXPECT_FALSE(process.running()) << "still running";
  return text;
}

TEST(ToolProcess, PassesArgumentsAndOutputUnchanged) {
  ToolProcess process({"printf", "%s|", "a b", "$(date)", "'c'\n"});
  EXPECT_EQ(all_of(process), "a b|$(date)|'c'\n|");
}

TEST(ToolProcess, ReadsALineBeforeTheToolEnds) {
  // Python buffers lines that it writes to a pipe, as the tools do, but not those to a terminal.
  ToolProcess process({"python3", "-c", "import time\nprint('line')\ntime.sleep(600)"});
  std::string text;
  for (const auto deadline = std::chrono::steady_clock::now() + 60s;
       text.find('\n') == std::string::npos && std::chrono::steady_clock::now() < deadline;) {
    text += process.read(-1, 1000ms);
  }
  EXPECT_EQ(text, "line\n");
  EXPECT_TRUE(process.running());
}

TEST(ToolProcess, QuotesTheLastLineOfStandardError) {
  ToolProcess process = shell("echo first >&2; echo 'the \033 last' >&2; echo >&2; exit 7");
  all_of(process);
  EXPECT_EQ(process.end_text(), "exit status 7: the ? last");
  ToolProcess killed = shell("kill -9 $$");
  all_of(killed);
  EXPECT_THAT(killed.end_text(), HasSubstr("killed by signal 9"));
}

TEST(ToolProcess, SendsSigtermThenSigkill) {
  ToolProcess polite = shell("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done");
  while (polite.read(-1, 1000ms).empty() && polite.running()) {
  }
  polite.end(60s);
  EXPECT_EQ(polite.end_text(), "exit status 5");
  ToolProcess stubborn = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
  while (stubborn.read(-1, 1000ms).empty() && stubborn.running()) {
  }
  stubborn.end(50ms);
  EXPECT_THAT(stubborn.end_text(), HasSubstr("signal 9"));
}

TEST(ToolProcess, EndsAToolThatPrintsWithoutPause) {
  ToolProcess process({"yes"});
  for (int i = 0; i < 100; ++i) process.read(-1, 1000ms);
  process.end(100ms);
  EXPECT_FALSE(process.running());
}

TEST(ToolProcess, WaitsForAToolThatClosedItsOutput) {
  ToolProcess process = shell("trap '' HUP; exec >&-; sleep 0.1; exit 4");
  all_of(process);
  EXPECT_EQ(process.end_text(), "exit status 4");
}

TEST(ToolProcess, EndsWhenItsStarterIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t starter = fork();
  ASSERT_GE(starter, 0);
  if (starter == 0) {
    close(ends[0]);
    ToolProcess process = shell("echo $$; exec sleep 600");
    std::string pid;
    while (pid.empty()) pid = process.read(-1, 1000ms);
    [[maybe_unused]] const ssize_t written = write(ends[1], pid.data(), pid.size());
    raise(SIGKILL);
  }
  close(ends[1]);
  char text[32] = {};
  ASSERT_GT(read(ends[0], text, sizeof text - 1), 0);
  close(ends[0]);
  waitpid(starter, nullptr, 0);
  const std::string stat = "/proc/" + std::to_string(std::atoi(text)) + "/stat";
  const auto gone = [&stat] {
    std::string id, name, state;  // Z: a zombie, which has ended
    return !(std::ifstream(stat) >> id >> name >> state) || state == "Z";
  };
  for (const auto deadline = std::chrono::steady_clock::now() + 60s;
       !gone() && std::chrono::steady_clock::now() < deadline;) {
    usleep(1000);
  }
  EXPECT_TRUE(gone());
}

TEST(ToolProcess, ReportsWhyItCannotStart) {
  const auto message = [](const std::string& program) {
    return message_of<Error>([&program] { ToolProcess process({program}); });
  };
  EXPECT_THAT(message("no-such-cat"), HasSubstr("no-such-cat is not installed"));
  EXPECT_EQ(message("/etc/passwd"), "cannot start /etc/passwd: Permission denied");
}

}  // namespace
}  // namespace verbscope
