// Suggestions, lists, line wrapping and numbers in text.
#include "common/text.hpp"

#include <gmock/gmock.h>

#include <cstdint>

namespace verbscope {
namespace {

using testing::ElementsAre;

const std::vector<std::string> kOptions{"--size", "--inline_size", "--inline_recv", "--iters", "--tx_depth", "--qp"};

TEST(DidYouMean, SuggestsAWordThatDiffersInFewLetters) {
  EXPECT_EQ(did_you_mean("--sise", kOptions), "; did you mean --size?");         // another letter
  EXPECT_EQ(did_you_mean("--isze", kOptions), "; did you mean --size?");         // two swapped
  EXPECT_EQ(did_you_mean("--txdepth", kOptions), "; did you mean --tx_depth?");  // one missing
  EXPECT_EQ(did_you_mean("--SIZE", kOptions), "; did you mean --size?");
  EXPECT_EQ(did_you_mean("--inline_rec", kOptions), "; did you mean --inline_recv?");
}

TEST(DidYouMean, SuggestsTheWordOfAPrefix) {
  EXPECT_EQ(did_you_mean("--inline", kOptions), "; did you mean --inline_size?");
  EXPECT_EQ(did_you_mean("--iter", kOptions), "; did you mean --iters?");
}

TEST(DidYouMean, SuggestsNothingIfNoneIsClose) {
  EXPECT_EQ(did_you_mean("--bandwidth", kOptions), "");
  EXPECT_EQ(did_you_mean("", kOptions), "");
  EXPECT_EQ(did_you_mean("x", {"RC", "UC", "UD"}), "");
  EXPECT_EQ(did_you_mean(std::string(100000, 'a'), kOptions), "");
  EXPECT_EQ(did_you_mean("--size", {}), "");
}

TEST(OrList, JoinsWordsWithOr) {
  EXPECT_EQ(or_list({"RC", "UC", "UD"}), "RC, UC or UD");
  EXPECT_EQ(or_list({"in", "out"}), "in or out");
  EXPECT_EQ(or_list({"all"}), "all");
}

TEST(NumberFrom, ReadsTheWholeText) {
  EXPECT_EQ(number_from<int>("-12"), -12);
  EXPECT_EQ(number_from<double>("1.5e3"), 1500);
  EXPECT_EQ(number_from<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "0x1", "1,2", "one"}) {
    EXPECT_EQ(number_from<int>(text), std::nullopt) << text;
    EXPECT_EQ(number_from<double>(text), std::nullopt) << text;
  }
}

TEST(NumberFrom, RefusesANumberOutsideItsRange) {
  EXPECT_EQ(number_from<double>("1e999"), std::nullopt);
  EXPECT_EQ(number_from<int>("2147483648"), std::nullopt);
  EXPECT_EQ(number_from<std::uint64_t>("-1"), std::nullopt);
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(split("a,b", ','), ElementsAre("a", "b"));
  EXPECT_THAT(split(",a,,", ','), ElementsAre("", "a", "", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
}

TEST(PrintableAscii, ReplacesEachOtherByte) {
  EXPECT_EQ(printable_ascii("a b~\n\x1b\x7f\xc3\xa4"), "a b~?????");
}

TEST(CStrings, EndWithANull) {
  const std::vector<std::string> strings{"one", ""};
  const std::vector<char*> pointers = c_strings(strings);
  ASSERT_EQ(pointers.size(), 3u);
  EXPECT_STREQ(pointers[0], "one");
  EXPECT_STREQ(pointers[1], "");
  EXPECT_EQ(pointers[2], nullptr);
}

TEST(Wrap, BreaksAtBlanksAndInsideLongWords) {
  EXPECT_THAT(wrap_words("one two three", 8), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap_words("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap_words("a abcdefgh b", 4), ElementsAre("a", "abcd", "efgh", "b"));
  EXPECT_THAT(wrap_words("one two three", 0), ElementsAre("one two three"));
  EXPECT_THAT(wrap_words("", 4), ElementsAre(""));
}

TEST(Wrap, KeepsTheIndentOfEachLine) {
  EXPECT_EQ(wrap_lines("  one two\nthree four five\n", 10), "  one two\nthree four\nfive\n");
  EXPECT_EQ(wrap_lines("  one two three\n", 10), "  one two\n  three\n");
}

}  // namespace
}  // namespace verbscope
