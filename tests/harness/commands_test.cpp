// The command lines of the subcommands: what is no value of an option is refused before anything runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "harness/commands/command.hpp"

namespace verbscope {
namespace {

TEST(Commands, EachHasANameOfItsOwnAndADescription) {
  std::vector<std::string_view> names;
  for (const Command& command : all_commands()) {
    CLI::App app;
    EXPECT_TRUE(command.add(app)) << command.name;
    EXPECT_FALSE(app.get_description().empty()) << command.name;
    EXPECT_EQ(std::ranges::count(names, command.name), 0) << command.name;
    names.emplace_back(command.name);
  }
}

// "nan" is neither below nor above a bound: a gate with such a threshold would let everything pass.
TEST(Commands, DiffRefusesABoundThatIsNoNumberOfItsRange) {
  const auto diff = std::ranges::find(all_commands(), std::string_view("diff"), &Command::name);
  for (const char* option : {"--threshold nan", "--threshold -nan", "--threshold inf", "--threshold 101",
                             "--threshold x", "--confidence nan", "--confidence 0.4"}) {
    CLI::App app;
    const Action action = diff->add(app);  // owns what the options set
    EXPECT_THROW(app.parse(fmt::format("a b {}", option)), CLI::ValidationError) << option;
  }
  CLI::App app;
  const Action action = diff->add(app);
  EXPECT_NO_THROW(app.parse("a b --threshold 5 --confidence 0.99"));
}

TEST(Commands, ExplainRefusesRunsAndNoRunsTogether) {
  const auto explain = std::ranges::find(all_commands(), std::string_view("explain"), &Command::name);
  for (const char* options : {"--what_if --closed_form", "--jobs 0", "--jobs many"}) {
    CLI::App app;
    const Action action = explain->add(app);
    EXPECT_THROW(app.parse(fmt::format("a {}", options)), CLI::ParseError) << options;
  }
}

}  // namespace
}  // namespace verbscope
