#include "common/terminal.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "common/cli.hpp"
#include "common/error.hpp"
#include "common/fd.hpp"
#include "common/json.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::HasSubstr;

TEST(Terminal, EscapesOnlyControlCharacters) {
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

TEST(Terminal, JsonEscapesRoundTrip) {
  const Json value{{"a\x7f", "\x1b\xc2\x9b\xc3\xa9\xc2\xa0"}};
  for (const std::string& text : {dump_json(value), pretty_json(value)}) {
    EXPECT_EQ(for_terminal(text), text);
    EXPECT_EQ(Json::parse(text), value);
  }
}

// Both ends of a terminal of so many columns, and what was printed on it.
class PseudoTerminal {
 public:
  explicit PseudoTerminal(unsigned short columns) {
    winsize size{24, columns, 0, 0};
    int program = -1;
    check("openpty", openpty(&far_, &program, nullptr, nullptr, &size));
    out_ = fdopen(program, "w");
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;
  ~PseudoTerminal() {
    std::fclose(out_);
    close(far_);
  }
  std::FILE* out() { return out_; }
  std::string printed() {
    std::array<char, 4096> text{};
    const ssize_t n = read(far_, text.data(), text.size());
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
  }

 private:
  int far_ = -1;
  std::FILE* out_ = nullptr;
};

// The environment that decides about colours, as it was afterwards.
class ColourEnvironment {
 public:
  ColourEnvironment(const char* terminal, const char* no_colour) {
    terminal == nullptr ? unsetenv("TERM") : setenv("TERM", terminal, 1);
    no_colour == nullptr ? unsetenv("NO_COLOR") : setenv("NO_COLOR", no_colour, 1);
  }
  ColourEnvironment(const ColourEnvironment&) = delete;
  ColourEnvironment& operator=(const ColourEnvironment&) = delete;
  ~ColourEnvironment() {
    setenv("TERM", "dumb", 1);
    unsetenv("NO_COLOR");
  }
};

TEST(Terminal, WidthIsZeroWithoutATerminal) {
  EXPECT_EQ(terminal_width(PseudoTerminal(80).out()), 80u);
  EXPECT_EQ(terminal_width(PseudoTerminal(132).out()), 132u);
  EXPECT_EQ(terminal_width(PseudoTerminal(7).out()), 40u);  // tables need some columns
  const TempDir folder;
  std::FILE* const file = std::fopen((folder / "file").c_str(), "w");
  EXPECT_EQ(terminal_width(file), 0u);
  EXPECT_FALSE(shows_colours(file));
  std::fclose(file);
}

TEST(Terminal, HighlightsSimulatedAndFailed) {
  const ColourEnvironment colours("xterm", nullptr);
  PseudoTerminal terminal(80);
  print_text(terminal.out(), "sim:cib (SIMULATED) \x1b[31mFAILED");
  EXPECT_EQ(terminal.printed(), "sim:cib (\x1b[33mSIMULATED\x1b[0m) \\x1b[31m\x1b[31mFAILED\x1b[0m");
}

TEST(Terminal, RespectsNoColor) {
  for (const auto& [name, no_colour] :
       std::vector<std::pair<const char*, const char*>>{{"xterm", "1"}, {"dumb", nullptr}, {nullptr, nullptr}}) {
    const ColourEnvironment colours(name, no_colour);
    PseudoTerminal terminal(80);
    print_text(terminal.out(), "SIMULATED");
    EXPECT_EQ(terminal.printed(), "SIMULATED");
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

TEST(TerminalDeathTest, UnwritableStandardErrorKeepsTheExitStatus) {
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

TEST(TerminalDeathTest, EarlierLostOutputIsAFailure) {
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

TEST(TerminalDeathTest, BrokenPipeEndsTheProgramQuietly) {
  const auto broken = [] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0) std::exit(99);
    close(ends[0]);
  };
  EXPECT_EXIT(run_with(broken, prints), ::testing::ExitedWithCode(141), "^$");
}

// A file that is opened later must not get the number of a closed descriptor.
TEST(TerminalDeathTest, OpensClosedDescriptorsOnDevNull) {
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

TEST(Terminal, StopEndsBlockedOutput) {
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

TEST(Warnings, PrintsTenAndTheTotal) {
  ::testing::internal::CaptureStderr();
  {
    Warnings warnings("file", "lines are bad");
    for (int i = 0; i < 12; ++i) warnings.add("bad\x1b");
  }
  const std::string output = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 11);
  EXPECT_THAT(output, HasSubstr("warning: file: in total 12 lines are bad"));
  EXPECT_THAT(output, ::testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace verbscope
