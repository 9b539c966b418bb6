#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "common/error.hpp"
#include "common/files.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using ::testing::HasSubstr;

std::size_t files_in(const TempDir& folder) {
  const std::filesystem::directory_iterator first(folder.path());
  return static_cast<std::size_t>(std::distance(first, std::filesystem::directory_iterator()));
}

TEST(OutputFile, KeepsTheOldTextUntilTheCommit) {
  const TempDir folder;
  const auto path = folder / "page.html";
  write_file(path, "old");
  {
    OutputFile out(path);
    out.write("new");
    EXPECT_EQ(read_file(path), "old");
  }
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(folder), 1u);
  replace_file(path, "new");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(OutputFile, KeepsTheModeAndSymbolicLinks) {
  const TempDir folder;
  write_file(folder / "real", "old");
  std::filesystem::permissions(folder / "real", std::filesystem::perms(0640));
  std::filesystem::create_symlink("real", folder / "link");
  replace_file(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "real"), "new");
  EXPECT_EQ(std::filesystem::status(folder / "real").permissions(), std::filesystem::perms(0640));
}

// A limit on the size of files stands for a full disk: both end a write half-way.
TEST(OutputFileDeathTest, IncompleteWriteLeavesTheOldText) {
  const TempDir folder;
  const auto path = folder / "page.html";
  write_file(path, "old");
  const auto write_too_much = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      replace_file(path, std::string(2000, 'x'));
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      throw;
    }
  };
  EXPECT_EXIT(
      {
        try {
          write_too_much();
        } catch (const Error&) {
          std::exit(1);
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(1), "cannot write .*page.html: File too large");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(folder), 1u);
}

// Temporary files of a killed program whose process id is in use again, or of any other program.
TEST(OutputFile, IgnoresTemporaryFilesOfOtherPrograms) {
  const TempDir folder;
  const auto foreign = folder / fmt::format(".verbscope-{}-0.part", getpid());
  std::filesystem::create_directory(foreign);
  write_file(foreign / "theirs", "x");
  {
    OutputFile first(folder / "page.html"), second(folder / "page.html");
    EXPECT_NE(first.temporary(), second.temporary());
    first.write("new");
    first.commit();
  }
  EXPECT_EQ(read_file(folder / "page.html"), "new");
  EXPECT_EQ(read_file(foreign / "theirs"), "x");
  EXPECT_EQ(files_in(folder), 2u);
}

TEST(OutputFile, WritesADeviceDirectly) {
  EXPECT_NO_THROW(replace_file("/dev/null", "text"));
  EXPECT_EQ(message_of<Error>([] { replace_file("/dev/full", "text"); }),
            "cannot write /dev/full: No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(CheckOutput, RejectsAnInputUnderAnyName) {
  const TempDir folder;
  write_file(folder / "a.html", "<title>verbscope report</title>");
  std::filesystem::create_symlink("a.html", folder / "soft");
  std::filesystem::create_hard_link(folder / "a.html", folder / "hard");
  for (const char* name : {"a.html", "./a.html", "soft", "hard"}) {
    EXPECT_THAT(message_of<UsageError>([&] {
                  check_output("--out", folder / name, FileKind::report_page, {folder / "other", folder / "a.html"});
                }),
                HasSubstr("it is also an input file"));
  }
}

TEST(CheckOutput, RejectsAFileOfAnotherKind) {
  const TempDir folder;
  const std::vector<std::pair<FileKind, std::string>> kinds{
      {FileKind::results, R"({"schema":"verbscope.record/1","benchmark":"x"})"},
      {FileKind::report_page, "<!doctype html><head><title>verbscope report</title>"},
      {FileKind::svg, "<?xml version=\"1.0\"?><svg>"},
      {FileKind::pdf, "%PDF-1.5"},
      {FileKind::validation_page, "# Simulated figures against published and measured ones"}};
  std::vector<std::string> others{"text of a person", R"({"schema": "verbscope.sweep/1"})",
                                  R"({"schema": "verbscope.cluster/1"})", std::string(1, '\0')};
  for (const auto& [kind, text] : kinds) others.push_back(text);
  const auto path = folder / "file";
  for (const auto& [kind, own] : kinds) {
    for (const std::string& text : others) {
      write_file(path, text);
      if (text == own) {
        EXPECT_NO_THROW(check_output("--out", path, kind)) << text;
      } else {
        EXPECT_THAT(message_of<UsageError>([&, one = kind] { check_output("--out", path, one); }),
                    HasSubstr("would be overwritten"))
            << text;
      }
    }
    write_file(path, "");
    EXPECT_NO_THROW(check_output("--out", path, kind));
    EXPECT_NO_THROW(check_output("--out", folder / "none", kind));
    EXPECT_NO_THROW(check_output("--out", "/dev/null", kind));
    EXPECT_THAT(message_of<UsageError>([&, one = kind] { check_output("--out", folder.path(), one); }),
                HasSubstr("it is a folder"));
  }
}

// The end of every signal that ends a program by itself and can be caught.
TEST(ScratchDeathTest, IsRemovedOnEveryCatchableSignal) {
  const TempDir folder;
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGXCPU, SIGSEGV,
                           SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGVTALRM, SIGRTMIN, SIGPIPE, SIGIO}) {
    const auto scratch = folder / fmt::format("scratch-{}", number);
    const auto end = [&] {
      std::signal(number, SIG_DFL);  // sanitizers have handlers of their own
      std::filesystem::create_directories(scratch / "a" / "b");
      for (int i = 0; i < 100; ++i) write_file(scratch / "a" / fmt::format("a file with a long name {}", i), "text");
      write_file(folder / "kept", "text");
      std::filesystem::create_symlink(folder / "kept", scratch / "link");
      const Scratch owner(scratch);
      std::raise(number);
    };
    EXPECT_EXIT(end(), ::testing::KilledBySignal(number), "");
    EXPECT_FALSE(std::filesystem::exists(scratch)) << number;
    EXPECT_EQ(read_file(folder / "kept"), "text");
  }
}

TEST(Scratch, IsRemovedByItsOwnerUnlessKept) {
  const TempDir folder;
  write_file(folder / "goes", "");
  write_file(folder / "stays", "");
  {
    const Scratch goes(folder / "goes");
    Scratch stays(folder / "stays");
    stays.keep();
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "goes"));
  EXPECT_TRUE(std::filesystem::exists(folder / "stays"));
}

}  // namespace
}  // namespace verbscope
