// Groups of records that form curves, and the names of the curves.
#include "analysis/plot.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

std::vector<std::string> names_of(const std::vector<Record>& records, const std::string& x = "size") {
  std::vector<std::string> names;
  for (const Curve& curve : curves_of(pointers(records), x, "rate_mops", {})) names.push_back(curve.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(Curves, LabelNamesTheCurve) {
  const std::vector<Record> records{labelled("one a post", {{"size", 16}, {"post_list", 1}, {"threads", 14}}, 1),
                                    labelled("16 a doorbell", {{"size", 16}, {"post_list", 16}, {"threads", 8}}, 2),
                                    labelled("one a post", {{"size", 32}, {"post_list", 1}, {"threads", 14}}, 3)};
  EXPECT_EQ(names_of(records), (Names{"one a post", "16 a doorbell"}));
}

TEST(Curves, WithoutLabelDifferingOptionsNameTheCurve) {
  const std::vector<Record> records{sweep_record({{"size", 16}, {"qp", 1}, {"post_list", 4}}, 1),
                                    sweep_record({{"size", 16}, {"qp", 2}, {"post_list", 4}}, 2)};
  EXPECT_EQ(names_of(records), (Names{"qp=1", "qp=2"}));
}

TEST(Curves, OptionsThatDifferUnderOneLabelFollowIt) {
  const std::vector<Record> records{labelled("a", {{"size", 16}, {"connection", "UC"}}, 1),
                                    labelled("a", {{"size", 16}, {"connection", "UD"}}, 2)};
  EXPECT_EQ(names_of(records), (Names{"a connection=UC", "a connection=UD"}));
}

TEST(Curves, NameContainsTheClusterIfThereAreSeveral) {
  const std::vector<Record> records{labelled("a", {{"size", 16}, {"qp", 4}}, 1),
                                    labelled("a", {{"size", 16}, {"qp", 2}}, 2, "sim:/x/cx3.json")};
  EXPECT_EQ(names_of(records), (Names{"cib a", "cx3 a"}));
}

TEST(Curves, NameContainsTheBenchmarkIfLabelsAreEqual) {
  std::vector<Record> records{labelled("READ", {{"size", 16}}, 1), labelled("WRITE", {{"size", 16}}, 2)};
  records[1].benchmark = "write_rate";
  EXPECT_EQ(names_of(records), (Names{"READ", "WRITE"}));
  records[1].environment["harness"]["label"] = "READ";
  EXPECT_EQ(names_of(records), (Names{"send_rate READ", "write_rate READ"}));
}

TEST(Curves, DefaultValueOfAnUnsetOptionIsUsed) {
  std::vector<Record> records{sweep_record({{"size", 16}, {"qp", 2}}, 1), sweep_record({{"size", 16}}, 2)};
  records[1].config["qp"] = 1;
  EXPECT_EQ(names_of(records), (Names{"qp=2", "qp=1"}));
}

TEST(Curves, RepetitionsShareOneSpot) {
  const std::vector<Record> records{sweep_record({{"size", 16}}, 1, 0), sweep_record({{"size", 16}}, 3, 1)};
  const std::vector<Curve> curves = curves_of(pointers(records), "size", "rate_mops", {});
  ASSERT_EQ(curves.size(), 1u);
  EXPECT_EQ(curves[0].spots.at(16).values, (std::vector<double>{1, 3}));
}

TEST(Curves, SamePointInTwoFilesGivesTwoCurves) {
  std::vector<Record> records{sweep_record({{"size", 16}}, 1), sweep_record({{"size", 16}}, 3)};
  records[0].file = "base";
  records[1].file = "new";
  const std::vector<Curve> curves = curves_of(pointers(records), "size", "rate_mops", {});
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].spots.at(16).values, std::vector<double>{1});
  EXPECT_EQ(curves[1].spots.at(16).values, std::vector<double>{3});
  EXPECT_EQ(names_of(records), (Names{"base", "new"}));
}

TEST(Curves, NameContainsTheFileOnlyIfItDistinguishesCurves) {
  std::vector<Record> records{sweep_record({{"size", 16}}, 1), sweep_record({{"size", 16}}, 3)};
  records[0].file = "base";
  records[1].file = "new";
  records[1].benchmark = "write_rate";
  EXPECT_EQ(names_of(records), (Names{"send_rate", "write_rate"}));
}

TEST(Curves, TwoProfilesWithOneNameGiveTwoCurves) {
  const std::vector<Record> records{sweep_record({{"size", 16}}, 1, 0, "sim:/p/a/cib.json"),
                                    sweep_record({{"size", 16}}, 3, 0, "sim:/p/b/cib.json")};
  EXPECT_EQ(names_of(records), (Names{"a/cib", "b/cib"}));
}

// Table 4: READs of up to 64 bytes to 8 threads with 4 QPs each reach 121.6 Mops.
TEST(Curves, PublishedFigureIsAtItsPoint) {
  Record record = sweep_record(
      {{"connection", "RC"}, {"direction", "in"}, {"size", 64}, {"region_size", 65536}, {"threads", 8}, {"qp", 4}},
      120);
  record.benchmark = "read_rate";
  const std::vector<PublishedPoint> published = load_published();
  const std::vector<Record> records{record};
  const CurveSpot spot = curves_of(pointers(records), "size", "rate_mops", published)[0].spots.at(64);
  ASSERT_NE(spot.published, nullptr);
  EXPECT_EQ(spot.published->value, 121.6);
}

}  // namespace
}  // namespace verbscope
