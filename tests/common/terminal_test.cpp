#include "common/terminal.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cli.hpp"
#include "common/error.hpp"
#include "common/fd.hpp"
#include "common/json.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::HasSubstr;

TEST(Terminal, ControlCharactersAreEscapedAndTextIsNot) {
  EXPECT_EQ(for_terminal("a\x1b[2Jb\nc\r\nd\re\t\x7f"), "a\\x1b[2Jb\nc\r\nd\\x0de\\x09\\x7f");
  EXPECT_EQ(for_terminal("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(for_terminal("\xc2\x9b"
                         "31m"),
            "\\x9b31m");  // CSI as one character
  EXPECT_EQ(for_terminal("\x9b"
                         "31m\xc3"),
            "\\x9b31m\\xc3");  // bytes that are not UTF-8
  EXPECT_EQ(for_terminal(std::string_view("\0", 1)), "\\x00");
}

TEST(Terminal, JsonIsEscapedTheJsonWayAndReadsBackTheSame) {
  const Json value{{"a\x7f", "\x1b\xc2\x9b\xc3\xa9\xc2\xa0"}};
  for (const std::string& text : {dump_json(value), pretty_json(value)}) {
    EXPECT_EQ(for_terminal(text), text);
    EXPECT_EQ(Json::parse(text), value);
  }
}

// A program that prints with what every program prints with, in a process whose descriptors are as `arrange` leaves
// them.
template <class Arrange>
[[noreturn]] void run_with(Arrange arrange, const std::function<int(int, char**)>& body) {
  arrange();
  char name[] = "prog";
  char* argv[] = {name, nullptr};
  std::exit(run_main("prog", 1, argv, body));
}

int prints(int, char**) {
  print_text(stdout, "text\n");
  return 0;
}

TEST(TerminalDeathTest, StandardErrorThatCannotBeWrittenChangesNoExitStatus) {
  const auto full = [] {
    if (std::freopen("/dev/full", "w", stderr) == nullptr) std::exit(99);
  };
  EXPECT_EXIT(run_with(full, [](int, char**) -> int { fail_usage("no"); }), ::testing::ExitedWithCode(2), "");
  EXPECT_EXIT(run_with(full,
                       [](int, char**) {
                         warn("a warning");
                         return 0;
                       }),
              ::testing::ExitedWithCode(0), "");
}

TEST(TerminalDeathTest, WhatWasLostBeforeTheEndIsAFailureToo) {
  const auto full = [] {
    if (std::freopen("/dev/full", "w", stdout) == nullptr) std::exit(99);
  };
  const auto goes_on = [](int, char**) {
    try {
      print_text(stdout, "text\n");
    } catch (const Error&) {
    }
    return 0;
  };
  EXPECT_EXIT(run_with(full, prints), ::testing::ExitedWithCode(1), "cannot write to standard output: No space left");
  EXPECT_EXIT(run_with(full, goes_on), ::testing::ExitedWithCode(1), "cannot write to standard output");
}

TEST(TerminalDeathTest, APipeThatNobodyReadsIsAFailureAndNoSignal) {
  const auto broken = [] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0) std::exit(99);
    close(ends[0]);
  };
  EXPECT_EXIT(run_with(broken, prints), ::testing::ExitedWithCode(1), "cannot write to standard output: Broken pipe");
}

// What is opened next must not get the number of a descriptor that was closed.
TEST(TerminalDeathTest, ClosedDescriptorsAreOpenedOnNothing) {
  const TempDir folder;
  const std::string path = (folder / "file").string();
  const auto close_all = [] {
    for (int fd = 0; fd < 3; ++fd) close(fd);
  };
  const auto opens_a_file = [&path](int, char**) {
    const Fd file(open(path.c_str(), O_WRONLY | O_CREAT, 0644));
    print_text(stdout, "text\n");
    warn("a warning");
    return file.get() > STDERR_FILENO ? 0 : 3;
  };
  EXPECT_EXIT(run_with(close_all, opens_a_file), ::testing::ExitedWithCode(0), "");
  EXPECT_EQ(read_file(path), "");
}

TEST(Terminal, OutputThatNobodyTakesEndsWithTheStop) {
  int ends[2], stop[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(stop, O_CLOEXEC), 0);
  const Fd reader(ends[0]), writer(ends[1]), stop_reader(stop[0]), stop_writer(stop[1]);
  set_output_stop(stop_reader.get());
  ASSERT_EQ(write(stop_writer.get(), "x", 1), 1);
  EXPECT_NO_THROW(write_all(writer.get(), "there is room for this", "pipe"));
  EXPECT_THROW(write_all(writer.get(), std::string(1 << 20, 'x'), "pipe"), InterruptedError);
  set_output_stop(-1);
}

TEST(Warnings, TenOfAFileAndTheirNumber) {
  ::testing::internal::CaptureStderr();
  {
    Warnings warnings("file", "lines in all are bad");
    for (int i = 0; i < 12; ++i) warnings.add("bad\x1b");
  }
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 11);
  EXPECT_THAT(told, HasSubstr("warning: file: 12 lines in all are bad"));
  EXPECT_THAT(told, ::testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace verbscope
