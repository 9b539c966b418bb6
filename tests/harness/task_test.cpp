// Tasks on other hosts: their results here, and that no process remains there.
#include "harness/cluster/task.hpp"

#include <csignal>

#include "tests/harness/loop_launcher.hpp"

namespace verbscope {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class TaskTest : public testing::Test {
 protected:
  TaskSpec spec(const std::string& script, milliseconds limit = milliseconds(60'000)) {
    return {.command = {"/bin/sh", "-c", script, "sh"},
            .environment = {"VERBSCOPE_SECRET=word-of-task-test"},
            .record_file = folder_.file("record.json"),
            .limit = limit};
  }
  std::unique_ptr<Task> start(const TaskSpec& spec) {
    return std::make_unique<Task>(launcher_, host_named("node1"), kHolder, spec);
  }
  // True if the condition holds within 20 s.
  static bool wait(Task& task, const std::function<bool()>& satisfied) {
    return wait_children({&task.child()}, Clock::now() + milliseconds(20'000), nullptr, satisfied) ==
           WaitEnd::satisfied;
  }
  static bool wait_end(Task& task) {
    return wait(task, [&task] { return !task.running(); });
  }

  TempFolder folder_;
  LoopLauncher launcher_{"echo 'welcome to this machine'; echo 'be nice' >&2"};
};

// The record option comes last: in these scripts it is "$1".
constexpr const char* kWriteRecord = "echo \"{$VERBSCOPE_SECRET}\" > \"${1#*=}\"; ";

TEST_F(TaskTest, ReturnsOutputEndAndRecord) {
  const auto task = start(spec(std::string(kWriteRecord) + "echo one; echo two >&2; exit 3"));
  ASSERT_TRUE(wait_end(*task));
  EXPECT_FALSE(task->succeeded());
  EXPECT_EQ(task->end_text(), "exit status 3");
  EXPECT_EQ(task->output(), "one\n");
  EXPECT_THAT(task->tail(), testing::UnorderedElementsAre("one", "two"));
  EXPECT_EQ(read_text(folder_.file("record.json")), "{word-of-task-test}\n");
}

TEST_F(TaskTest, KeepsTheSecretOffCommandLines) {
  const auto task = start(spec("for p in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $p; echo; done 2>/dev/null"));
  ASSERT_TRUE(wait_end(*task));
  EXPECT_TRUE(task->succeeded());
  EXPECT_THAT(task->output(), testing::HasSubstr("verbscope hold"));
  EXPECT_THAT(task->output(), testing::Not(testing::HasSubstr("word-of-task-test")));
}

TEST_F(TaskTest, PassesHostileArgumentsUnchanged) {
  TaskSpec hostile = spec("printf '<%s>' \"$@\"");
  hostile.command.insert(hostile.command.end(), {"$(id)", "a'b", "; exit 9", "new\nline", "\"}"});
  const auto task = start(hostile);
  ASSERT_TRUE(wait_end(*task));
  EXPECT_THAT(task->output(), testing::StartsWith("<$(id)><a'b><; exit 9><new\nline><\"}><--out_json_file="));
}

TEST_F(TaskTest, EndingATaskEndsTheRemoteProgram) {
  const auto task = start(spec("trap '' TERM; sleep 1000 & echo $!; wait"));
  ASSERT_TRUE(wait(*task, [&task] { return task->output().ends_with("\n"); }));
  task->end(milliseconds(10'000));
  EXPECT_FALSE(task->running());
  EXPECT_EQ(task->end_text(), "killed by signal 9 (Killed)");
  EXPECT_TRUE(is_gone_soon(std::stoi(task->output())));
}

TEST_F(TaskTest, ALostConnectionEndsTheRemoteProgram) {
  const auto task = start(spec("echo $$; exec sleep 1000"));
  ASSERT_TRUE(wait(*task, [&task] { return task->output().ends_with("\n"); }));
  task->child().signal(SIGKILL);
  ASSERT_TRUE(wait_end(*task));
  EXPECT_FALSE(task->succeeded());
  EXPECT_THAT(task->end_text(), testing::StartsWith("connection lost (killed by signal 9"));
  EXPECT_EQ(task->tail(), (std::vector<std::string>{"welcome to this machine", "be nice"}));
  EXPECT_TRUE(is_gone_soon(std::stoi(task->output())));
}

TEST_F(TaskTest, TheRemoteProgramEndsAtItsTimeLimit) {
  const auto task = start(spec("sleep 1000", milliseconds(300)));
  ASSERT_TRUE(wait_end(*task));
  EXPECT_EQ(task->end_text(), "killed by signal 15 (Terminated), not finished after 300 ms");
}

TEST_F(TaskTest, MeasuresTheSilenceOfTheHost) {
  const auto task = start(spec("sleep 1000"));
  const auto start = Clock::now();
  wait_children({&task->child()}, start + kHoldBeat + milliseconds(1500), nullptr, [] { return false; });
  EXPECT_LT(task->silence(), kHoldBeat + milliseconds(1000)) << "the holder sends beats while the program is silent";
  task->child().signal(SIGSTOP);
  wait_children({&task->child()}, Clock::now() + kHoldBeat + milliseconds(1500), nullptr, [] { return false; });
  EXPECT_GT(task->silence(), kHoldBeat + milliseconds(1000));
  task->child().signal(SIGCONT);
  ASSERT_TRUE(wait(*task, [&task] { return task->silence() < milliseconds(500); }));
}

TEST_F(TaskTest, ReportsAMissingRemoteProgram) {
  const auto task = start({.command = {"/nowhere/send_rate"}, .environment = {}, .record_file = folder_.file("r")});
  ASSERT_TRUE(wait_end(*task));
  EXPECT_EQ(task->end_text(), "cannot start /nowhere/send_rate: No such file or directory");
}

TEST_F(TaskTest, ReportsAHostWithoutVerbscopeAsALostConnection) {
  Task task(launcher_, host_named("node1"), "/nowhere/verbscope", spec("true"));
  ASSERT_TRUE(wait_end(task));
  EXPECT_EQ(task.end_text(), "connection lost (exit status 127)");
  EXPECT_THAT(task.tail().back(), testing::HasSubstr("/nowhere/verbscope"));
}

}  // namespace
}  // namespace verbscope
