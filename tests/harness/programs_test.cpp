// The programs of `verbscope simulate`, from its command line.
#include "harness/simulate/programs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string refusal(const std::vector<std::string>& words) {
  try {
    parse_programs(words);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Programs, AreOnNodesInTheirOrder) {
  const auto programs = parse_programs({"server", "-a", "::", "client", "node0", "::", "client"});
  ASSERT_EQ(programs.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(programs[static_cast<std::size_t>(i)].node, i);
  EXPECT_THAT(programs[0].arguments, ElementsAre("server", "-a"));
  EXPECT_THAT(programs[1].arguments, ElementsAre("client", "node0"));
  EXPECT_EQ(programs[1].title(), "node1: client");
}

TEST(Programs, MayNameTheirNode) {
  const auto programs = parse_programs({"@2", "a", "::", "b", "::", "@2", "c"});
  EXPECT_EQ(programs[0].node, 2);
  EXPECT_EQ(programs[1].node, 1) << "the second program";
  EXPECT_EQ(programs[2].node, 2);
}

TEST(Programs, MayNameTheirFolderAndEnvironment) {
  const TempDir folder;
  const std::string path = (folder / ".").string();
  const auto programs = parse_programs({"@1:" + path, "A=1", "_B2=x=y", "a", "C=3", "::", "b"});
  EXPECT_EQ(programs[0].node, 1);
  EXPECT_EQ(programs[0].folder, path);
  EXPECT_THAT(programs[0].environment, ElementsAre("A=1", "_B2=x=y"));
  EXPECT_THAT(programs[0].arguments, ElementsAre("a", "C=3")) << "what follows the name is an argument";
  EXPECT_EQ(programs[1].folder, "");
  EXPECT_THAT(programs[1].environment, IsEmpty());
}

TEST(Programs, KeepTheirArgumentsAsTheyAre) {
  const auto programs = parse_programs({"a", "@1", "X=1", "", "--", ":"});
  EXPECT_THAT(programs[0].arguments, ElementsAre("a", "@1", "X=1", "", "--", ":"));
}

TEST(Programs, HaveNamesThatAreNoVariables) {
  EXPECT_THAT(parse_programs({"=x"})[0].arguments, ElementsAre("=x"));
  EXPECT_THAT(parse_programs({"1A=x"})[0].arguments, ElementsAre("1A=x"));
  EXPECT_THAT(parse_programs({"./a=b"})[0].arguments, ElementsAre("./a=b"));
}

TEST(Programs, AreRefusedWithoutAName) {
  EXPECT_THAT(refusal({}), HasSubstr("program 1: expected a program's name"));
  EXPECT_THAT(refusal({"a", "::"}), HasSubstr("program 2: expected a program's name"));
  EXPECT_THAT(refusal({"::", "a"}), HasSubstr("program 1: expected"));
  EXPECT_THAT(refusal({"a", "::", "X=1"}), HasSubstr("program 2: expected"));
  EXPECT_THAT(refusal({"@1"}), HasSubstr("program 1: expected"));
}

TEST(Programs, AreRefusedOnNodesThatCannotBe) {
  for (const char* word : {"@", "@x", "@-1", "@256", "@99999999999", "@1x", "@ 1"}) {
    EXPECT_THAT(refusal({word, "a"}), HasSubstr(std::string(word) + ": expected @NODE or @NODE:FOLDER")) << word;
  }
  EXPECT_THAT(refusal({"@1:/none/such", "a"}), HasSubstr("/none/such is no folder"));
  EXPECT_THAT(refusal({"@255", "a"}), HasSubstr("accepted"));
}

}  // namespace
}  // namespace verbscope
