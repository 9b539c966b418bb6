#include "common/error.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "common/fd.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

TEST(Error, CheckReturnsAGoodResultAndNamesABadOne) {
  EXPECT_EQ(check("open", 7), 7);
  EXPECT_EQ(message_of<Error>([] { check("opening /no/such", ::open("/no/such", O_RDONLY)); }),
            "opening /no/such: No such file or directory");
}

TEST(Error, EscapesLineEndsOfForeignText) {
  EXPECT_EQ(message_of<Error>([] { fail("peer says \"{}\"", "a\nb\x1b[2J"); }), "peer says \"a\\nb\\x1b[2J\"");
}

// U+202E writes from right to left: "txt.exe" looks like "exe.txt".
TEST(Error, EscapesInvisibleCharacters) {
  EXPECT_EQ(on_one_line("a\u202etxt.exe"), "a\\u202etxt.exe");
  EXPECT_EQ(on_one_line("a\u200bb\ufeff\u2066"), "a\\u200bb\\ufeff\\u2066");
  EXPECT_EQ(on_one_line("Gr\u00fc\u00dfe \u4e16"), "Gr\u00fc\u00dfe \u4e16");
}

TEST(Error, ShortensValuesTo60Bytes) {
  const std::string end = "\", allowed are a and b";
  EXPECT_EQ(message_of<Error>([&] { fail("--x: got \"{}{}", std::string(100'000, 'v'), end); }),
            "--x: got \"" + std::string(60, 'v') + "..." + end);
  EXPECT_EQ(message_of<Error>([&] { fail("--x: got \"{}{}", std::string(60, 'v'), end); }),
            "--x: got \"" + std::string(60, 'v') + end);
  EXPECT_EQ(with_short_values("no " + std::string(5000, 'w') + " here"), "no " + std::string(60, 'w') + "... here");
  EXPECT_EQ(with_short_values("read '\"key': " + std::string(70, 'r') + " (why)"),
            "read '\"key': " + std::string(70, 'r') + " (why)")
      << "a quote that nothing closes begins no value";
  std::string words;
  for (int i = 0; i < 5000; ++i) words += "word ";
  EXPECT_LE(with_short_values(words).size(), 2010u);
  EXPECT_EQ(with_short_values("\"" + std::string(59, 'v') + "\u4e16\""), "\"" + std::string(59, 'v') + "...\"")
      << "a character is not cut in two";
}

TEST(Error, ChecksErrnoAndNullResults) {
  EXPECT_NO_THROW(check_errno("ibv_modify_qp", 0));
  EXPECT_EQ(message_of<Error>([] { check_errno("ibv_modify_qp", EINVAL); }), "ibv_modify_qp: Invalid argument");
  int value = 0;
  EXPECT_EQ(check_pointer("ibv_create_cq", &value), &value);
  EXPECT_EQ(message_of<Error>([] {
              errno = ENOMEM;
              check_pointer<int>("ibv_create_cq", nullptr);
            }),
            "ibv_create_cq: Cannot allocate memory");
}

TEST(Fd, ClosesOnceAndMoves) {
  int number = -1;
  {
    Fd first(::open("/dev/null", O_RDONLY));
    number = first.get();
    Fd second = std::move(first);
    EXPECT_EQ(second.get(), number);
    EXPECT_NE(::fcntl(number, F_GETFD), -1);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace verbscope
