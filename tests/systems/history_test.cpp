// Files of histories.
#include "systems/history/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/temp_dir.hpp"
#include "tests/systems/histories.hpp"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kLine =
    R"({"client":3,"operation":7,"kind":"put","key":1,"value":5,"invoked_ns":100,"completed_ns":200})"
    "\n";
const std::string kNoAnswer =
    R"({"client":3,"operation":7,"kind":"put","key":1,"value":5,"invoked_ns":100,"completed_ns":null})"
    "\n";

std::string with(std::string line, const std::string& part, const std::string& other) {
  return line.replace(line.find(part), part.size(), other);
}

class HistoryFiles : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::vector<HistoryEvent> read(const std::vector<std::string>& paths) {
    return read_histories(paths, [this](const std::string& warning) { warnings_.push_back(warning); });
  }
  std::string message(const std::vector<std::string>& paths) {
    try {
      read(paths);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  TempDir folder_;
  std::vector<std::string> warnings_;
};

TEST_F(HistoryFiles, AreReadAsTheyWereWritten) {
  std::mt19937_64 random(1);
  const std::vector<HistoryEvent> events = register_history({.clients = 5, .keys = 3, .unknown_share = 0.1}, random);
  const std::filesystem::path path = folder_ / "history";
  HistoryWriter writer(path, "--history_file");
  for (const HistoryEvent& event : events) writer.write(event);
  const std::vector<HistoryEvent> again = read({path.string()});
  ASSERT_EQ(again.size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(to_json(again[i]), to_json(events[i]));
  HistoryWriter(path, "--history_file");  // begins anew
  EXPECT_TRUE(read({path.string()}).empty());
}

TEST_F(HistoryFiles, AnEventIsInTheFileWhenItIsWritten) {
  HistoryWriter writer(folder_ / "history", "--history_file");
  writer.write(put(5, 1, {}));
  EXPECT_EQ(read({(folder_ / "history").string()}).size(), 1u);
}

TEST_F(HistoryFiles, AFileOfAnotherKindIsNotReplaced) {
  const std::string path = file("page", "<svg></svg>");
  EXPECT_THROW(HistoryWriter(path, "--history_file"), UsageError);
}

TEST_F(HistoryFiles, TheLaterLineOfAnOperationCounts) {
  const std::vector<HistoryEvent> events = read({file("a", kNoAnswer + kLine)});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].completed, Nanos(200));
  EXPECT_THAT(message({file("b", kNoAnswer + with(kLine, "\"value\":5", "\"value\":6"))}),
              AllOf(HasSubstr("b:2: operation 7 of client 3"), HasSubstr("differs")));
}

TEST_F(HistoryFiles, TwoFilesMustNotHaveTheSameOperation) {
  EXPECT_EQ(read({file("a", kLine), file("b", with(kLine, "\"client\":3", "\"client\":4"))}).size(), 2u);
  EXPECT_THAT(message({file("c", kLine), file("d", kNoAnswer)}),
              HasSubstr("d:1: another file has operation 7 of client 3"));
}

TEST_F(HistoryFiles, ALastLineWithoutALineEndIsIgnoredWithAWarning) {
  EXPECT_EQ(read({file("a", kNoAnswer + kLine.substr(0, 60))}).size(), 1u);
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("a:2: "), HasSubstr("line end"))));
}

TEST_F(HistoryFiles, ErrorsNameTheLineAndTheKey) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[1]\n", "object"},
      {"{\n", "a:2: "},
      {with(kLine, "put", "del"), R"(key "kind": expected "get" or "put", got "del")"},
      {with(kLine, "\"value\":5", "\"value\":0"), R"(key "value")"},
      {with(kLine, "\"value\":5", "\"value\":-1"), R"(key "value")"},
      {with(kLine, "200", "99"), R"(key "completed_ns")"},
      {with(kLine, "100", "-1"), R"(key "invoked_ns")"},
      {with(kLine, "completed_ns", "completed"), R"("completed_ns")"},
      {with(kLine, "\"key\":1", "\"key\":1,\"kex\":1"), "kex"}};
  for (const auto& [line, part] : cases) {
    EXPECT_THAT(message({file("a", kLine + line)}), AllOf(HasSubstr("a:2"), HasSubstr(part)));
  }
  EXPECT_THAT(message({(folder_ / "none").string()}), HasSubstr("cannot read a history from "));
}

}  // namespace
}  // namespace verbscope
