// Quoting for shells: a shell passes exactly the original words to the program.
#include "harness/cluster/shell_quote.hpp"

#include "harness/process/child.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

// The words that a program receives when `shell` parses the quoted text.
std::string through(const std::string& shell, const std::vector<std::string>& words) {
  std::vector<std::string> command{"/usr/bin/printf", "<%s>"};
  command.insert(command.end(), words.begin(), words.end());
  std::string output;
  Child child({shell, "-c", shell_quote(command)}, [&output](std::string_view chunk) { output += chunk; });
  wait_children({&child}, std::chrono::steady_clock::now() + std::chrono::seconds(20), nullptr,
                [&child] { return !child.running(); });
  EXPECT_TRUE(child.succeeded());
  return output;
}

TEST(ShellQuote, PreservesHostileWords) {
  const std::vector<std::string> words{"plain",       "",          "two words",  "'",         "''\\''",   "\"$HOME\"",
                                       "$(touch /x)", "`id`",      "; rm -rf /", "a&b|c>d",   "*?[a]",    "~root",
                                       "!!",          "new\nline", "\\",         "-oProxy=x", "\xff\x01", "#no"};
  std::string expected;
  for (const std::string& word : words) expected += "<" + word + ">";
  EXPECT_EQ(through("/bin/sh", words), expected);
  EXPECT_EQ(through("/bin/bash", words), expected);
}

TEST(ShellQuote, AShellSplitsOnlyTheWords) {
  EXPECT_EQ(shell_quote({"a", "b c"}), "a 'b c'");
  EXPECT_EQ(shell_quote({"a=b", "--size=60", ""}), "'a=b' --size=60 ''");
  EXPECT_EQ(shell_quote({"it's"}), R"('it'\''s')");
}

TEST(ShellQuote, RejectsANullByte) {
  EXPECT_THAT(error_of([] { shell_quote({std::string("a\0b", 3)}); }), testing::HasSubstr("null byte"));
}

}  // namespace
}  // namespace verbscope
