// Identities of points, and distinct names of the files and fabrics in one view.
#include "analysis/points.hpp"

#include <gmock/gmock.h>

#include "analysis/results_files.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;

TEST(Sources, FilesHaveTheShortestDistinctEndings) {
  EXPECT_THAT(file_names({"a/run.jsonl"}), ElementsAre(""));
  EXPECT_THAT(file_names({"a/base.jsonl", "b/new.jsonl"}), ElementsAre("base", "new"));
  EXPECT_THAT(file_names({"a/x/run.jsonl", "b/x/run.jsonl"}), ElementsAre("a/x/run", "b/x/run"));
  EXPECT_THAT(file_names({"/d/run.jsonl", "/d/run.json"}), ElementsAre("/d/run.jsonl", "/d/run.json"));
}

TEST(Sources, DuplicateFileIsAnError) {
  EXPECT_THAT(
      [] {
        file_names({"a/run.jsonl", "./a/../a/run.jsonl"});
      },
      testing::ThrowsMessage<UsageError>(testing::HasSubstr("given twice")));
}

TEST(Sources, SamePointInTwoFilesGivesTwoRecords) {
  const TempFolder folder;
  const Record record = sweep_record({{"size", 16}}, 1);
  const std::string line = dump_json(to_json(record)) + "\n";
  const std::vector<std::string> paths{folder.file("base.jsonl"), folder.file("new.jsonl")};
  for (const std::string& path : paths) write_text(path, line + line);
  const std::vector<Record> records = load_results(paths, false);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].file, "base");
  EXPECT_EQ(records[1].file, "new");
  EXPECT_EQ(last_of_each_point(records).size(), 2u);
  EXPECT_EQ(point_id(records[0]), point_id(records[1]));
}

std::vector<std::string> fabric_names(const std::vector<std::pair<std::string, std::string>>& places) {
  std::vector<Record> records;
  for (const auto& [fabric, checksum] : places) {
    records.push_back(sweep_record({{"size", 16}}, 1, 0, fabric));
    records.back().environment["cluster_profile"] = checksum;
  }
  const FabricNames names(pointers(records));
  std::vector<std::string> out;
  for (const Record& record : records) out.push_back(names.name_of(record));
  return out;
}

TEST(Sources, ProfilesWithOneNameShowTheirFolders) {
  EXPECT_THAT(fabric_names({{"sim:cib", "11"}, {"sim:cx3", "22"}}), ElementsAre("cib", "cx3"));
  EXPECT_THAT(fabric_names({{"sim:/p/a/cib.json", "11"}, {"sim:/p/b/cib.json", "22"}, {"sim:cx3", "33"}}),
              ElementsAre("a/cib", "b/cib", "cx3"));
  EXPECT_THAT(fabric_names({{"sim:cib", "11"}, {"sim:/p/cib.json", "22"}}), ElementsAre("cib", "p/cib"));
}

TEST(Sources, ChangedProfileShowsItsChecksum) {
  EXPECT_THAT(fabric_names({{"sim:cib", "1234567890"}, {"sim:cib", "abcdef7890"}}),
              ElementsAre("cib@12345678", "cib@abcdef78"));
}

TEST(Points, IdDependsOnThePointOnly) {
  const Record record = sweep_record(Json{{"post_list", 1}, {"size", 8}}, 80);
  Record again = sweep_record(Json{{"size", 8}, {"post_list", 1}}, 90);
  EXPECT_EQ(point_id(record), point_id(again));
  EXPECT_NE(point_id(record), point_id(sweep_record(Json{{"post_list", 2}, {"size", 8}}, 80)));
  EXPECT_EQ(point_id(record).size(), 8u);
  const std::vector<Record> both{record, again};
  ASSERT_EQ(last_of_each_point(both).size(), 1u);
  EXPECT_EQ(last_of_each_point(both)[0], &both[1]);
}

}  // namespace
}  // namespace verbscope
