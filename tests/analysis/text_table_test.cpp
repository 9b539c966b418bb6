// Tables fit the width and lose nothing.
#include "analysis/text_table.hpp"

#include <gmock/gmock.h>

#include <set>
#include <sstream>

namespace verbscope {
namespace {

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) longest = std::max(longest, line.size());
  return longest;
}

std::set<std::string> cells_in(const std::string& text) {
  std::set<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

TextTable two_rows() {
  TextTable table({{"", {{"list"}, {"size"}}}, {"sim.", {{"Mops"}}}, {"reads/op", {{"meas."}, {"model"}}}});
  table.add_heading("sim:cib (SIMULATED)");
  table.add_row({"1", "60", "80.15", "0.00", "0.00"});
  table.add_row({"16", "0", "157.0", "1.000", "1.00"});
  return table;
}

TEST(TextTable, IsOneTableIfItFits) {
  const std::string whole =
      "          | sim.  | reads/op\n"
      "list size |  Mops | meas. model\n"
      "-------------------------------\n"
      "sim:cib (SIMULATED)\n"
      "   1   60 | 80.15 |  0.00  0.00\n"
      "  16    0 | 157.0 | 1.000  1.00\n";
  EXPECT_EQ(two_rows().text(), whole);
  EXPECT_EQ(two_rows().text(31), whole);
}

TEST(TextTable, GroupsWithoutRoomFollowWithTheFirstGroup) {
  EXPECT_EQ(two_rows().text(30),
            "          | sim.\n"
            "list size |  Mops\n"
            "-----------------\n"
            "sim:cib (SIMULATED)\n"
            "   1   60 | 80.15\n"
            "  16    0 | 157.0\n"
            "\n"
            "          | reads/op\n"
            "list size | meas. model\n"
            "-----------------------\n"
            "sim:cib (SIMULATED)\n"
            "   1   60 |  0.00  0.00\n"
            "  16    0 | 1.000  1.00\n");
}

TEST(TextTable, LongTextsWrap) {
  TextTable table({{"", {{"id"}}}, {"", {{"options", true}}}});
  table.add_row({"7", "connection=UD size=60 inline_size=60 post_list=16"});
  EXPECT_EQ(table.text(30),
            "   |\n"  // the first of two header lines has the groups, which have no names here
            "id | options\n"
            "------------------------------\n"
            " 7 | connection=UD size=60\n"
            "   | inline_size=60\n"
            "   | post_list=16\n");
}

TEST(TextTable, WideFirstGroupIsReplacedByRowNumbers) {
  TextTable table(
      {{"", {{"connection"}, {"post_list"}, {"inline_size"}}}, {"rate", {{"Mops"}}}, {"bound", {{"Mops"}}}});
  table.add_row({"UD", "16", "60", "101.6", "103.6"});
  table.add_row({"RC", "1", "0", "20.1", "25.0"});
  EXPECT_EQ(table.text(40),
            "  |\n"
            "# | connection post_list inline_size\n"
            "------------------------------------\n"
            "1 |         UD        16          60\n"
            "2 |         RC         1           0\n"
            "\n"
            "  | rate  | bound\n"
            "# |  Mops |  Mops\n"
            "-----------------\n"
            "1 | 101.6 | 103.6\n"
            "2 |  20.1 |  25.0\n");
}

TEST(TextTable, NoteOfARowIsPrintedOnce) {
  TextTable table = two_rows();
  table.add_note({"4", "60"}, "FAILED: no end after 3 s");
  const std::string text = table.text(24);
  EXPECT_LE(longest_line(text), 24u) << text;
  const std::size_t first = text.find("FAILED");
  ASSERT_NE(first, text.npos);
  EXPECT_EQ(text.find("FAILED", first + 1), text.npos) << text;
  EXPECT_LT(first, text.find("reads/op"));
}

// A table of fourteen columns at every width from 40: no line is longer, every cell is there.
TEST(TextTable, NothingIsCutAtAnyWidth) {
  TextTable table({{"", {{"size"}, {"threads"}}},
                   {"rate", {{"Mops"}}},
                   {"bound", {{"Mops"}, {"by", true}}},
                   {"reads/op", {{"meas."}, {"model"}, {"%"}}},
                   {"writes/op", {{"meas."}, {"model"}, {"%"}}},
                   {"published", {{"Mops"}, {"%"}, {"", true}}}});
  table.add_row({"64", "8", "r1", "b1", "pcie_to_nic", "m1", "m2", "m3", "w1", "w2", "w3", "p1", "p2", "calibrated"});
  table.add_row({"32", "4", "r2", "b2", "mmio", "n1", "n2", "n3", "x1", "x2", "x3", "q1", "q2", "predicted"});
  const std::set<std::string> all = cells_in(table.text());
  for (std::size_t width = 40; width < 120; ++width) {
    const std::string text = table.text(width);
    EXPECT_LE(longest_line(text), width) << text;
    const std::set<std::string> there = cells_in(text);
    for (const std::string& word : all) {
      EXPECT_TRUE(word.find_first_not_of('-') == word.npos || there.contains(word)) << word << " at " << width;
    }
  }
}

}  // namespace
}  // namespace verbscope
