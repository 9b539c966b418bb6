// The table of published figures and what matches it.
#include "analysis/published.hpp"

#include <map>

#include "tests/harness/fakes.hpp"

namespace verbscope {
namespace {

std::string table_text(const std::string& points) {
  return R"({"schema": "verbscope.published/1", "points": [)" + points + "]}";
}

std::string point_text(const std::string& id, const std::string& rest) {
  return R"({"id": ")" + id +
         R"(", "paper": "p", "where": "T1", "cluster": "cib", "what": "w", "metric": "rate_mops",)" +
         R"("value": 80, "use": "calibration", )" + rest + "}";
}

constexpr const char* kMatch =
    R"("match": {"benchmark": "send_rate", "metric": "rate_mops",
       "config": {"connection": "UD", "header_only": false, "size": {"min": 1, "max": 60, "run": 32}, "threads": {"min": 12, "run": 14}}})";

Record record_with(const Json& config, const std::string& fabric = "sim:cib") {
  Record record = fake_record(fabric);
  record.config = config;
  return record;
}

TEST(Published, ARecordMatchesWhenEveryKeyIsAccepted) {
  const auto points = parse_published(table_text(point_text("row", kMatch)), "p.json");
  const Json good{{"connection", "UD"}, {"header_only", false}, {"size", 60}, {"threads", 12}, {"other", 1}};
  const auto matches = [&](const char* key, const Json& value) {
    Json config = good;
    config[key] = value;
    return find_published(points, record_with(config)) != nullptr;
  };
  EXPECT_TRUE(matches("other", 2));
  EXPECT_TRUE(matches("size", 1));
  EXPECT_FALSE(matches("size", 0));
  EXPECT_FALSE(matches("size", 61));
  EXPECT_FALSE(matches("size", nullptr));
  EXPECT_FALSE(matches("threads", 11));
  EXPECT_FALSE(matches("connection", "RC"));
  EXPECT_FALSE(matches("header_only", true));
}

TEST(Published, AnotherClusterBenchmarkOrAMissingKeyDoesNotMatch) {
  const auto points = parse_published(table_text(point_text("row", kMatch)), "p.json");
  const Json good{{"connection", "UD"}, {"header_only", false}, {"size", 60}, {"threads", 12}};
  EXPECT_EQ(find_published(points, record_with(good))->id, "row");
  EXPECT_EQ(find_published(points, record_with(good, "sim:cx3")), nullptr);
  EXPECT_EQ(find_published(points, record_with(good, "verbs")), nullptr);
  EXPECT_EQ(find_published(points, record_with(Json{{"connection", "UD"}})), nullptr);
  Record other = record_with(good);
  other.benchmark = "recv_rate";
  EXPECT_EQ(find_published(points, other), nullptr);
}

TEST(Published, TheSameObjectSaysHowToRunTheRow) {
  const auto points = parse_published(table_text(point_text("row", kMatch)), "p.json");
  EXPECT_EQ(points[0].run_params(), Json::parse(R"({"connection":"UD","header_only":false,"size":32,"threads":14})"));
}

TEST(Published, PredictedRowsMatchTheModelsValues) {
  const auto points = parse_published(
      table_text(point_text("limit", R"("match": {"predict": {"lines_per_wqe": 2}, "metric": "mmio_limit_mops"})") +
                 "," + point_text("row", kMatch)),
      "p.json");
  const auto found = find_predicted(points, "cib", Json{{"lines_per_wqe", 2}, {"mmio_limit_mops", 87.5}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]->id, "limit");
  EXPECT_TRUE(find_predicted(points, "cib", Json{{"lines_per_wqe", 1}}).empty());
  EXPECT_TRUE(find_predicted(points, "cx3", Json{{"lines_per_wqe", 2}}).empty());
}

TEST(Published, ABadTableIsOneLine) {
  const auto error = [](const std::string& text) { return error_of([&] { parse_published(text, "p.json"); }); };
  EXPECT_EQ(error(table_text(point_text("r", R"("bottleneck": "x")"))),
            R"(p.json: points[0]: expected either "match" or "needs")");
  EXPECT_THAT(error(table_text(point_text("r", R"("needs": "x", "colour": 1)"))), testing::HasSubstr("colour"));
  EXPECT_THAT(error(table_text(point_text(
                  "r", R"("match": {"benchmark": "b", "metric": "m", "config": {"n": {"min": 2, "run": 1}}})"))),
              testing::HasSubstr("is not within min and max"));
}

TEST(Published, TheTableOfTheProjectIsWhole) {
  const auto points = load_published();
  EXPECT_EQ(points.size(), 28u);
  const auto count = [&](auto predicate) { return std::ranges::count_if(points, predicate); };
  const std::map<std::string, int> rows{{"send_rate", 6},  {"recv_rate", 5},   {"read_rate", 3},
                                        {"write_rate", 1}, {"atomic_rate", 3}, {"sequencer", 6}};
  for (const auto& [benchmark, expected] : rows) {
    EXPECT_EQ(count([&name = benchmark](const PublishedPoint& p) { return p.benchmark == name; }), expected)
        << benchmark;
  }
  EXPECT_EQ(count([](const PublishedPoint& p) { return p.reproducible() && p.benchmark.empty(); }), 4);
  // Only whole systems are not reproducible.
  for (const PublishedPoint& p : points) EXPECT_TRUE(p.reproducible() || p.needs.ends_with("sequencer")) << p.id;
}

TEST(Published, DeviationsReadWell) {
  EXPECT_EQ(percent_text(deviation_percent(82, 80)), "+2.5");
  EXPECT_EQ(percent_text(deviation_percent(79.2, 80)), "-1.0");
  EXPECT_EQ(percent_text(deviation_percent(80.01, 80)), "0.0");
  EXPECT_EQ(percent_text(std::numeric_limits<double>::infinity()), "+inf");
}

}  // namespace
}  // namespace verbscope
