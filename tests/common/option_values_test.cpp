// Values of options in the forms that users write.
#include "common/option_values.hpp"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>

#include "common/error.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

std::string refusal_of(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Bytes, AcceptWholeNumbersWithASuffix) {
  const auto bytes = [](const char* text) { return parse_bytes(text, "--size", 0, std::uint64_t{1} << 40); };
  EXPECT_EQ(bytes("0"), 0u);
  EXPECT_EQ(bytes("4096"), 4096u);
  EXPECT_EQ(bytes("4k"), 4096u);
  EXPECT_EQ(bytes("4K"), 4096u);
  EXPECT_EQ(bytes("2m"), 2u * 1024 * 1024);
  EXPECT_EQ(bytes("3G"), std::uint64_t{3} * 1024 * 1024 * 1024);
}

TEST(Bytes, RejectOtherTextAndNameTheRange) {
  for (const char* text :
       {"", "k", "-1", "4kk", "4 k", "1.5k", "4kB", "0x10", "99999999999999999999", "99999999999999G"}) {
    EXPECT_EQ(refusal_of([&] { parse_bytes(text, "--size", 0, 4096); }),
              "--size: expected bytes, 0 to 4k, as 64, 4k, 2M or 1G, got \"" + std::string(text) + "\"");
  }
  EXPECT_THAT(refusal_of([] { parse_bytes("5k", "--size", 0, 4096); }), HasSubstr("0 to 4k"));
}

TEST(Bytes, UseTheLargestUnitThatDivides) {
  EXPECT_EQ(bytes_text(0), "0");
  EXPECT_EQ(bytes_text(1000), "1000");
  EXPECT_EQ(bytes_text(1536), "1536");
  EXPECT_EQ(bytes_text(std::uint64_t{1} << 31), "2G");
  EXPECT_EQ(bytes_text(std::uint64_t{3} << 20), "3M");
}

TEST(Words, IgnoreTheCase) {
  EXPECT_EQ(parse_word("ud", "-c", {"RC", "UC", "UD"}), "UD");
  EXPECT_EQ(parse_word("READ", "--verb", {"read", "write"}), "read");
  EXPECT_EQ(refusal_of([] {
              parse_word("raed", "--verb", {"read", "write"});
            }),
            "--verb: expected read or write, got \"raed\"; did you mean read?");
}

// An option with the validator, and what a command line makes of it.
std::string given(const CLI::Validator& validator, const std::string& line) {
  CLI::App app;
  std::string value;
  app.add_option("--value", value)->transform(validator);
  return refusal_of([&] { app.parse(line); }) == "accepted" ? value : refusal_of([&] { app.parse(line); });
}

TEST(Validators, RewriteAcceptedText) {
  EXPECT_EQ(given(bytes_between(1, 1 << 20), "--value 1M"), "1048576");
  EXPECT_EQ(given(whole_number(-1, 255), "--value -1"), "-1");
  EXPECT_EQ(given(whole_number(0, 255), "--value 010"), "10");  // not octal
  EXPECT_EQ(given(one_of({"text", "json"}), "--value JSON"), "json");
  EXPECT_EQ(given(number_between(0, 99), "--value 2.5"), "2.5");
}

TEST(Validators, DescribeAllowedValues) {
  EXPECT_EQ(given(whole_number(1, 8), "--value 9"), "--value: expected a whole number, 1 to 8, got \"9\"");
  EXPECT_EQ(given(whole_number(1, 8), "--value abc"), "--value: expected a whole number, 1 to 8, got \"abc\"");
  EXPECT_EQ(given(number_between(0, 99), "--value nan"), "--value: expected a number from 0 to 99, got \"nan\"");
  EXPECT_EQ(given(one_of({"text", "json"}), "--value jsn"),
            "--value: expected text or json, got \"jsn\"; did you mean json?");
}

}  // namespace
}  // namespace verbscope
