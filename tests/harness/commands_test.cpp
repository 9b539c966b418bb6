// Command lines of the subcommands: invalid values are rejected before anything runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "common/error.hpp"
#include "harness/commands/command.hpp"

namespace verbscope {
namespace {

TEST(Commands, HaveUniqueNamesAndDescriptions) {
  std::vector<std::string_view> names;
  for (const Command& command : all_commands()) {
    CLI::App app;
    EXPECT_TRUE(command.add(app)) << command.name;
    EXPECT_FALSE(app.get_description().empty()) << command.name;
    EXPECT_EQ(std::ranges::count(names, command.name), 0) << command.name;
    names.emplace_back(command.name);
  }
}

// "nan" is neither below nor above a bound: with such a threshold every comparison would pass.
TEST(Commands, DiffRejectsBoundsOutOfRange) {
  const auto diff = std::ranges::find(all_commands(), std::string_view("diff"), &Command::name);
  for (const char* option : {"--threshold nan", "--threshold -nan", "--threshold inf", "--threshold 101",
                             "--threshold x", "--confidence nan", "--confidence 0.4"}) {
    CLI::App app;
    const Action action = diff->add(app);  // owns the variables of the options
    EXPECT_THROW(app.parse(fmt::format("a b {}", option)), CLI::ValidationError) << option;
  }
  CLI::App app;
  const Action action = diff->add(app);
  EXPECT_NO_THROW(app.parse("a b --threshold 5 --confidence 0.99"));
}

TEST(Commands, ExplainRejectsBadNumbersOfJobs) {
  const auto explain = std::ranges::find(all_commands(), std::string_view("explain"), &Command::name);
  for (const char* options : {"--jobs 0", "--jobs many"}) {
    CLI::App app;
    const Action action = explain->add(app);
    EXPECT_THROW(app.parse(fmt::format("a {}", options)), CLI::ParseError) << options;
  }
}

TEST(Commands, ExplainRejectsATargetWithClosedForm) {
  const auto explain = std::ranges::find(all_commands(), std::string_view("explain"), &Command::name);
  CLI::App app;
  const Action action = explain->add(app);
  app.parse("a --closed_form --target 30");
  EXPECT_THROW(action(), UsageError);
}

}  // namespace
}  // namespace verbscope
