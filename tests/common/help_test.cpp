// The text of --help.
#include "common/help.hpp"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "common/option_values.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

std::string page_of(const CLI::App& app, std::size_t width) {
  return render(help_page(app, "prog"), width, false);
}

TEST(Help, ShowsGroupsAllowedValuesAndDefaults) {
  CLI::App app{"Measures."};
  std::uint32_t size = 0;
  int list = 1;
  bool inlined = false;
  std::string host;
  app.add_option("-s,--size", size, "payload")
      ->transform(bytes_between(0, 4096))
      ->type_name("BYTES")
      ->group("Operation");
  app.add_option("--post_list", list, "work requests")
      ->transform(whole_number(1, 8))
      ->default_str("1")
      ->group("Operation");
  app.add_flag("--inline", inlined, "send inline")->group("Place");
  app.add_option("host", host, "the server");
  app.footer("Example:\n  prog -s 4k");
  EXPECT_EQ(page_of(app, 80),
            "Measures.\n"
            "\nUsage: prog [OPTIONS] [host]\n"
            "\nArguments:\n  host                      the server\n"
            "\nOperation:\n"
            "  -s, --size BYTES          payload [0 to 4k]\n"
            "  --post_list N             work requests [1 to 8; default 1]\n"
            "\nPlace:\n  --inline                  send inline\n"
            "\nHelp:\n  -h, --help                print this help\n"
            "\nExample:\n  prog -s 4k\n");
}

TEST(Help, KeepsItsWidthAndLosesNoText) {
  CLI::App app{"A summary that is longer than the lines that there are for it, so that it needs two or three of them."};
  std::string value;
  app.add_option("--a_name_that_needs_more_than_its_column", value,
                 "a text that goes on and on for more than one line");
  const std::string page = page_of(app, 50);
  std::istringstream lines(page);
  std::string words;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 50u) << line;
    std::istringstream parts(line);
    for (std::string word; parts >> word;) words += word + " ";
  }
  EXPECT_THAT(words, HasSubstr("a text that goes on and on for more than one line"));
  EXPECT_THAT(words, HasSubstr("so that it needs two or three of them."));
}

TEST(Help, FormatsAllowedValuesAndDefaults) {
  const OptionWords word{"string", "RC", Json{"RC", "UC", "UD"}};
  EXPECT_EQ(value_name(word), "WORD");
  EXPECT_EQ(entry_text("transport", allowed_text(word), default_text(word)), "transport [RC, UC or UD; default RC]");
  const OptionWords bytes{"bytes", 4096, Json{{"min", 0}, {"max", 1u << 31}}};
  EXPECT_EQ(entry_text("payload", allowed_text(bytes), default_text(bytes)), "payload [0 to 2G; default 4k]");
  const OptionWords time{"duration", 0.5, Json{{"zero", false}}};
  EXPECT_EQ(entry_text("time", allowed_text(time), default_text(time)), "time [more than 0; default 0.5s]");
  const OptionWords open{"string", nullptr, nullptr};
  EXPECT_EQ(entry_text("text", allowed_text(open), default_text(open)), "text");
}

}  // namespace
}  // namespace verbscope
