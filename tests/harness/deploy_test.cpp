// Deployment: copies missing or damaged programs, and checks that they run.
#include "harness/cluster/deploy.hpp"

#include <cstdlib>

#include "harness/process/child.hpp"
#include "tests/harness/loop_launcher.hpp"

namespace verbscope {
namespace {

class DeployTest : public testing::Test {
 protected:
  DeployTest() {
    std::filesystem::create_directory(home_);
    write_program("verbscope", "echo verbscope 0.1.0");
    write_program("send_rate", "exit 0");
  }
  void write_program(const std::string& name, const std::string& body) {
    write_text(here_.file(name), "#!/bin/sh\n" + body + "\n");
  }
  std::vector<Program> programs() { return hash_programs(here_.file(""), {"send_rate", "verbscope"}, nullptr); }
  // `more` runs on the host before each command.
  std::size_t deploy(const std::string& more = ":") {
    LoopLauncher launcher("echo 'motd'; export HOME=" + shell_quote({home_}) + "; " + more);
    return deployment_.deploy(launcher, host_named("node1"), programs(), nullptr);
  }
  // A program of the host, for deploy() with there_ first in PATH.
  void shadow(const std::string& name, const std::string& body) {
    write_text(there_.file(name), "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(there_.file(name), std::filesystem::perms::owner_all);
  }
  void expect_no_file() {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(home_)) {
      EXPECT_FALSE(entry.is_regular_file()) << entry.path();
    }
  }
  std::string there(const std::string& program) { return *deployment_.path(host_named("node1"), program); }

  TempFolder here_, there_;
  const std::string home_ = there_.file("it's home");
  Deployment deployment_;
};

TEST_F(DeployTest, CopiesOnlyMissingPrograms) {
  EXPECT_EQ(deploy(), 2u);
  EXPECT_EQ(deploy(), 0u);
  const std::string path = there("send_rate");
  EXPECT_THAT(path, testing::StartsWith(home_ + "/.cache/verbscope/"));
  EXPECT_EQ(read_text(path), read_text(here_.file("send_rate")));
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms::owner_all);
  write_program("send_rate", "exit 1");
  EXPECT_EQ(deploy(), 1u);
  EXPECT_NE(there("send_rate"), path) << "another content has another place";
}

TEST_F(DeployTest, CopiesDamagedProgramsAgain) {
  deploy();
  write_text(there("send_rate"), "cut off");
  EXPECT_EQ(deploy(), 1u);
  EXPECT_EQ(read_text(there("send_rate")), read_text(here_.file("send_rate")));
}

TEST_F(DeployTest, RejectsAnotherArchitecture) {
  shadow("uname", "echo vax");
  EXPECT_THAT(error_of([&] { deploy("PATH=" + there_.file("") + ":$PATH"); }),
              testing::StartsWith("host node1: its architecture is vax"));
}

TEST_F(DeployTest, ReportsAFullDiskAndLeavesNoPart) {
  // A file size limit of 0 has the same effect on a writer as a full disk.
  const std::string error = error_of([&] { deploy("ulimit -f 0; trap '' XFSZ"); });
  EXPECT_THAT(error, testing::StartsWith("host node1: copy send_rate: exit status "));
  expect_no_file();
}

TEST_F(DeployTest, ReportsWhyAProgramIsNotCompressed) {
  shadow("gzip", "echo 'No space left on device' >&2; exit 1");
  const std::string path = std::getenv("PATH");
  ASSERT_EQ(setenv("PATH", (there_.file("") + ":" + path).c_str(), 1), 0);
  const std::string error = error_of([&] { deploy(); });
  ASSERT_EQ(setenv("PATH", path.c_str(), 1), 0);
  EXPECT_EQ(error, "gzip: exit status 1: No space left on device");
}

TEST_F(DeployTest, AStopRequestEndsALocalTool) {
  auto [read_end, write_end] = make_pipe();
  write_end = Fd();
  StopSource stop(read_end.get());
  EXPECT_THROW(hash_programs(here_.file(""), {"verbscope"}, &stop), InterruptedError);
}

TEST_F(DeployTest, ASignalDuringACopyLeavesNoPart) {
  shadow("gzip", "kill -TERM $PPID");
  EXPECT_EQ(error_of([&] { deploy("PATH=" + there_.file("") + ":$PATH"); }),
            "host node1: copy send_rate: exit status 1: motd");
  expect_no_file();
}

TEST_F(DeployTest, ReportsAProgramThatDoesNotStart) {
  write_program("verbscope", "echo 'libfmt.so.9: cannot open shared object file' >&2; exit 127");
  EXPECT_EQ(error_of([&] { deploy(); }),
            "host node1: start verbscope: exit status 127: libfmt.so.9: cannot open shared object file");
  write_program("verbscope", "echo verbscope 0.0.1");
  EXPECT_THAT(error_of([&] { deploy(); }),
              testing::AllOf(testing::HasSubstr("host node1"), testing::HasSubstr("version 0.1.0")));
}

TEST_F(DeployTest, ReportsAnUnreachableHost) {
  LoopLauncher launcher;
  EXPECT_EQ(error_of([&] { deployment_.deploy(launcher, host_named("unreachable"), programs(), nullptr); }),
            "host unreachable: query: no way to it");
}

TEST_F(DeployTest, CleanRemovesEverything) {
  deploy();
  LoopLauncher launcher("export HOME=" + shell_quote({home_}));
  remove_deployed(launcher, host_named("node1"), nullptr);
  EXPECT_FALSE(std::filesystem::exists(home_ + "/.cache/verbscope"));
  EXPECT_TRUE(std::filesystem::exists(home_));
}

}  // namespace
}  // namespace verbscope
