// `--where`: which records a condition leaves.
#include "analysis/where.hpp"

#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

std::size_t left_by(const std::vector<Record>& records, const std::vector<std::string>& conditions) {
  std::vector<const Record*> kept = pointers(records);
  keep_where(kept, conditions);
  return kept.size();
}

TEST(Where, KeepsRecordsWithOneOfTheValues) {
  std::vector<Record> records{labelled("a", {{"size", 16}, {"events", true}}, 1),
                              labelled("b", {{"size", 160}, {"events", false}}, 1, "sim:cx3"),
                              labelled("b", {{"size", 32}, {"events", false}}, 1)};
  EXPECT_EQ(left_by(records, {"size=16"}), 1u);
  EXPECT_EQ(left_by(records, {"size=16,32.0"}), 2u);
  EXPECT_EQ(left_by(records, {"label=b"}), 2u);
  EXPECT_EQ(left_by(records, {"label=b", "fabric=cx3"}), 1u);
  EXPECT_EQ(left_by(records, {"fabric=sim:cib"}), 2u);
  EXPECT_EQ(left_by(records, {"events=true"}), 1u);
  EXPECT_EQ(left_by(records, {"benchmark=send_rate"}), 3u);
}

TEST(Where, SaysWhatThereIsInsteadOfLeavingNothing) {
  const std::vector<Record> records{labelled("a", {{"size", 16}, {"post_list", 4}}, 1)};
  EXPECT_EQ(error_of([&] { left_by(records, {"sise=16"}); }),
            "--where sise=16: no record has \"sise\": there are benchmark, fabric, label, post_list, size");
  EXPECT_EQ(error_of([&] { left_by(records, {"size=17"}); }), "--where size=17: leaves no record: there are 16");
  EXPECT_THAT(error_of([&] { left_by(records, {"size"}); }), testing::StartsWith("--where: expected key=value"));
  EXPECT_EQ(left_by(records, {"post-list=4"}), 1u);
}

}  // namespace
}  // namespace verbscope
