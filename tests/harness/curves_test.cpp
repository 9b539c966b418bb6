// Sweeps as tables of curves.
#include "harness/paper/reproduce.hpp"
#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

Sweep sweep_of(const std::string& rest) {
  return parse_sweep(R"({"schema": "verbscope.sweep/1", "benchmark": "send_rate", )" + rest + "}", "s.json");
}

// Each point yields ten times its size, and its list as a path into the result.
std::vector<CurvePoint> run(const Sweep& sweep, const std::vector<std::string>& fabrics) {
  std::vector<CurvePoint> out;
  for (const std::string& fabric : fabrics) {
    for (const Point& point : expand_sweep(sweep, fabric)) {
      Record record = fake_record(fabric);
      record.result["rate_mops"] = point.params.at("size").get<double>() * 10;
      record.result["list"] = Json{{"length", point.params.value("post_list", 1)}};
      out.push_back({fabric, point, record});
    }
  }
  return out;
}

TEST(Curves, LastKeyOfVaryFormsRowsOtherKeysFormCurves) {
  const Sweep sweep = sweep_of(R"("vary": {"connection": ["RC", "UD"], "size": [8, 16]},
    "points": [{"label": "single"}, {"post_list": 16}])");
  EXPECT_EQ(curve_table(sweep, run(sweep, {"sim:cib"})),
            "     | cib single connection=RC | cib single connection=UD | cib post_list=16 connection=RC | cib "
            "post_list=16 connection=UD\n"
            "size |                     Mops |                     Mops |                           Mops |             "
            "              Mops\n"
            "----------------------------------------------------------------------------------------------------------"
            "------------------\n"
            "   8 |                    80.00 |                    80.00 |                          80.00 |             "
            "             80.00\n"
            "  16 |                    160.0 |                    160.0 |                          160.0 |             "
            "             160.0\n");
}

TEST(Curves, ShowsSeveralResultKeysAndPaths) {
  const Sweep sweep = sweep_of(R"("vary": {"size": [8]}, "show": ["rate_mops", "list.length", "list.depth"])");
  const std::string table = curve_table(sweep, run(sweep, {"sim:cib", "sim:cx3"}));
  EXPECT_THAT(table, testing::HasSubstr("     | cib                          | cx3\n"));
  EXPECT_THAT(table, testing::HasSubstr(" Mops list.length list.depth |"));
  EXPECT_THAT(table, testing::ContainsRegex("\n   8 \\| 80\\.00 +1\\.00 +- \\| 80\\.00 +1\\.00 +-\n"));
}

TEST(Curves, WithoutVaryEntriesOfPointsAreRows) {
  const Sweep sweep = sweep_of(R"("points": [{"label": "small", "size": 1}, {"size": 2}])");
  const std::string table = curve_table(sweep, run(sweep, {"sim:cib"}));
  EXPECT_THAT(table, testing::ContainsRegex("\n small \\| 10\\.00\nsize=2 +\\| 20\\.00\n"));
}

TEST(Curves, FailedPointIsMarkedInItsCellAndListedBelow) {
  const Sweep sweep = sweep_of(R"("vary": {"size": [8, 16]})");
  std::vector<CurvePoint> points = run(sweep, {"sim:cib"});
  points[1].record.status = RecordStatus::failed;
  points[1].record.reason = "no memory";
  const std::string table = curve_table(sweep, points);
  EXPECT_THAT(table, testing::ContainsRegex("\n  16 \\| FAILED\n"));
  EXPECT_THAT(table, testing::EndsWith("FAILED: cib, 16: no memory\n"));
}

}  // namespace
}  // namespace verbscope
