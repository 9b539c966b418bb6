// Figures of papers in a report: published values next to ours.
#include "analysis/report.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

TEST(PaperFigures, RowNamesAFigureWithOrWithoutItsPart) {
  EXPECT_TRUE(names_figure("Table 4, Fig 12", "Fig 12"));
  EXPECT_TRUE(names_figure("Section 5.2.2, Fig 12a", "Fig 12"));
  EXPECT_FALSE(names_figure("Table 4, Fig 12", "Fig 1"));
  EXPECT_FALSE(names_figure("Table 4, Fig 11a", "Fig 11b"));
}

// 121.6 Mops are published; 120 are 1.3 % less. The other row of Figure 12 did not run.
TEST(PaperFigures, RowHasPublishedAndOurFigure) {
  Record record = labelled(
      "READ",
      {{"connection", "RC"}, {"direction", "in"}, {"size", 64}, {"region_size", 65536}, {"threads", 8}, {"qp", 4}},
      120);
  record.benchmark = "read_rate";
  record.environment["harness"]["figure"] = "atc16 Fig 12";
  record.environment["harness"]["along"] = "size";
  const std::vector<PublishedPoint> published = load_published();
  const std::vector<Record> records{record};
  const Json figures = paper_figures(compare_records(pointers(records), published), published);
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].at("id"), "atc16 Fig 12");
  EXPECT_EQ(figures[0].at("along"), "size");
  std::size_t ran = 0;
  for (const Json& row : figures[0].at("rows")) {
    EXPECT_NE(row.at("where").get<std::string>().find("Fig 12"), std::string::npos);
    if (row.at("ours").is_null()) {
      EXPECT_EQ(row.at("why"), "not in these records");
      continue;
    }
    ++ran;
    EXPECT_EQ(row.at("published"), "121.6 Mops");
    EXPECT_EQ(row.at("use"), "calibrated");
    EXPECT_NEAR(row.at("deviation").get<double>(), -1.3, 0.05);
  }
  EXPECT_EQ(ran, 1u);
  EXPECT_EQ(figures[1].at("rows").size(), 1u);
}

}  // namespace
}  // namespace verbscope
