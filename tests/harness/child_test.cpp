// Child processes: start, bounded output, and end of the whole process group.
#include "harness/process/child.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

std::vector<std::string> shell(const std::string& script) {
  return {"/bin/sh", "-c", script};
}

WaitEnd wait_end(Child& child, milliseconds limit = milliseconds(20'000)) {
  return wait_for_end(child, Clock::now() + limit, nullptr);
}

TEST(Child, ReportsExitStatusAndSignal) {
  Child good(shell("exit 0")), bad(shell("exit 3")), killed(shell("kill -9 $$"));
  for (Child* child : {&good, &bad, &killed}) EXPECT_EQ(wait_end(*child), WaitEnd::satisfied);
  EXPECT_TRUE(good.succeeded());
  EXPECT_FALSE(bad.succeeded());
  EXPECT_EQ(bad.end_text(), "exit status 3");
  EXPECT_EQ(killed.end_text(), "killed by signal 9 (Killed)");
  EXPECT_EQ(killed.end_and_last_line(), killed.end_text());
}

TEST(Child, ReportsTheLastLineWithItsEnd) {
  Child child(shell("echo first; echo 'no space left' >&2; exit 1"));
  EXPECT_EQ(wait_end(child), WaitEnd::satisfied);
  EXPECT_EQ(child.end_and_last_line(), "exit status 1: no space left");
}

TEST(Child, ReportsAMissingProgramInOneLine) {
  EXPECT_EQ(error_of([] { Child({"/nowhere/tool"}); }), "cannot start /nowhere/tool: No such file or directory");
}

TEST(Child, PassesArgumentsUnchanged) {
  std::string output;
  Child child({"/bin/sh", "-c", "printf '%s|' \"$@\"", "sh", "a b", "$(id)", "'", ""},
              [&output](std::string_view chunk) { output += chunk; });
  EXPECT_EQ(wait_end(child), WaitEnd::satisfied);
  EXPECT_EQ(output, "a b|$(id)|'||");
}

TEST(Child, KeepsTheLastLinesOfBothStreamsOnly) {
  Child child(shell("i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); done; printf 'no\\001newline' >&2"));
  EXPECT_EQ(wait_end(child), WaitEnd::satisfied);
  const auto tail = child.tail();
  ASSERT_EQ(tail.size(), Child::kTailLines + 1);
  EXPECT_EQ(tail[Child::kTailLines - 1], "line 499");
  EXPECT_EQ(tail.back(), "no?newline");
}

TEST(Child, BoundsTheLengthOfOneLine) {
  Child child(shell("head -c 3000000 /dev/zero"));
  EXPECT_EQ(wait_end(child), WaitEnd::satisfied);
  ASSERT_EQ(child.tail().size(), 1u);
  EXPECT_EQ(child.tail()[0].size(), Child::kTailLineBytes);
}

TEST(Child, MeetsTheDeadlineDespiteEndlessOutput) {
  Child child(shell("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"));
  EXPECT_EQ(wait_end(child, milliseconds(300)), WaitEnd::timeout);
  child.end(milliseconds(1000));
  EXPECT_FALSE(child.running());
}

TEST(Child, EndKillsTheWholeProcessGroup) {
  TempFolder folder;
  Child child(shell("trap '' TERM; sleep 1000 & echo $! > " + folder.file("pid") + "; echo up; wait"));
  const auto up = [&child] { return !child.tail().empty(); };
  ASSERT_EQ(wait_children({&child}, Clock::now() + milliseconds(20'000), nullptr, up), WaitEnd::satisfied);
  child.end(milliseconds(100));
  EXPECT_FALSE(child.running());
  EXPECT_TRUE(is_gone_soon(std::stoi(read_text(folder.file("pid")))));
}

TEST(Child, DiesWithTheProcessThatStartedIt) {
  TempFolder folder;
  const pid_t starter = fork();
  ASSERT_GE(starter, 0);
  if (starter == 0) {
    Child child(shell("trap '' TERM INT HUP; echo $$; exec sleep 1000"),
                [&folder](std::string_view pid) { write_text(folder.file("pid"), std::string(pid)); });
    wait_children({&child}, Clock::now() + milliseconds(20'000), nullptr,
                  [&folder] { return std::filesystem::exists(folder.file("pid")); });
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(starter, &status, 0), starter);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(is_gone_soon(std::stoi(read_text(folder.file("pid")))));
}

TEST(Child, ReportsAnUnusableProgramInOneLine) {
  TempFolder folder;
  write_text(folder.file("tool"), "no program");
  std::filesystem::permissions(folder.file("tool"), std::filesystem::perms::owner_all);
  EXPECT_EQ(error_of([&] { Child({folder.file("tool")}); }),
            "cannot start " + folder.file("tool") + ": Exec format error");
}

TEST(Child, EndsAlthoughAGrandchildKeepsItsOutputOpen) {
  Child child(shell("sleep 1000 & exit 0"));
  EXPECT_EQ(wait_end(child), WaitEnd::satisfied);
  EXPECT_TRUE(child.succeeded());
}

TEST(Child, AddsVariablesToTheEnvironment) {
  std::string output;
  Child child(shell("echo $EXTRA $PATH"), [&output](std::string_view chunk) { output += chunk; }, {"EXTRA=new"});
  EXPECT_EQ(wait_end(child), WaitEnd::satisfied);
  EXPECT_EQ(output, "new " + std::string(std::getenv("PATH")) + "\n");
}

TEST(Child, InterruptEndsTheWaitOnly) {
  Interrupt interrupt;
  Child child(shell("kill -INT $PPID; sleep 1000"));
  const auto never = [] { return false; };
  EXPECT_EQ(wait_children({&child}, Clock::now() + milliseconds(20'000), &interrupt, never), WaitEnd::interrupted);
  EXPECT_TRUE(child.running());
}

TEST(TempFolder, WritesAFile) {
  TempFolder folder;
  const std::string path = folder.write("a.json", "first and longer\n");
  EXPECT_EQ(folder.write("a.json", "second\n"), path);
  std::ifstream in(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "second\n");
}

TEST(TempFolder, AFullDiskIsAnErrorThatNamesTheFile) {
  TempFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.file("full.json"));
  EXPECT_THAT([&] { folder.write("full.json", "text"); },
              testing::ThrowsMessage<Error>(
                  testing::AllOf(testing::HasSubstr(folder.file("full.json")), testing::HasSubstr("No space left"))));
}

}  // namespace
}  // namespace verbscope
