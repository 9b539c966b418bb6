#include <gtest/gtest.h>

#include "common/text.hpp"

namespace verbscope {
namespace {

using Words = std::vector<std::string>;

TEST(Secrets, ReplacesSecretValues) {
  EXPECT_EQ(without_secrets({"p", "--secret", "x", "-s", "8"}), (Words{"p", "--secret", "***", "-s", "8"}));
  EXPECT_EQ(without_secrets({"env", "VERBSCOPE_SECRET=x=y", "p", "--auth-token=z"}),
            (Words{"env", "VERBSCOPE_SECRET=***", "p", "--auth-token=***"}));
  EXPECT_EQ(without_secrets({"p", "--secret", "--secret", "-x"}), (Words{"p", "--secret", "***", "-x"}))
      << "what follows is the value, whatever it looks like";
  EXPECT_EQ(without_secrets({"p", "--secret"}), (Words{"p", "--secret"}));
}

TEST(Secrets, OverwritesSecretsInTheCommandLine) {
  std::string program = "p", option = "--secret=word", size = "--size=8";
  char* words[] = {program.data(), option.data(), size.data()};
  hide_secrets(3, words);
  EXPECT_EQ(option, "--secret=****");
  EXPECT_EQ(size, "--size=8");
}

}  // namespace
}  // namespace verbscope
