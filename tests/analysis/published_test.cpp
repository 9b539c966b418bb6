// The table of published figures, and the records that match its rows.
#include "analysis/published.hpp"

#include <map>
#include <set>

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

TEST(Published, RecordMatchesIfEveryKeyIsAccepted) {
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

TEST(Published, OtherClusterBenchmarkOrMissingKeyDoesNotMatch) {
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

// Fewer outstanding operations, or a changed option that the row does not name, make a different figure.
TEST(Published, PointWithOtherChangedOptionsDoesNotMatch) {
  const auto points = load_published();
  const auto row = std::ranges::find(points, "atc16-t3-spec-s0-cib", &PublishedPoint::id);
  ASSERT_NE(row, points.end());
  Record record = record_with(row->run.params());
  record.benchmark = row->run.benchmark;
  const auto found = [&] { return find_published(points, record); };
  ASSERT_EQ(found(), &*row);
  record.environment["options_set"] = Json{"outstanding", "duration", "fabric", "seed"};
  EXPECT_EQ(found(), &*row);
  record.config["uars"] = "exclusive";
  record.environment["options_set"].push_back("uars");
  EXPECT_EQ(found(), &*row) << "the papers' programs share no register";
  record.environment["options_set"].push_back("mtu");
  EXPECT_EQ(found(), nullptr) << "another MTU than the default";
  record.environment["options_set"] = Json::array();
  record.config["outstanding"] = 4;  // simulated: 82.7 Mops instead of 121.9
  EXPECT_EQ(found(), nullptr);
}

TEST(Published, RowGivesTheOptionsToRunIt) {
  const auto points = parse_published(table_text(point_text("row", kMatch)), "p.json");
  EXPECT_EQ(points[0].run.params(), Json::parse(R"({"connection":"UD","header_only":false,"size":32,"threads":14})"));
}

TEST(Published, PredictedRowsMatchModelValues) {
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

constexpr const char* kSecond = R"({"benchmark": "recv_rate", "metric": "rate_mops", "config": {"threads": 8}})";

std::string with_second(const std::string& key) {
  std::string match = kMatch;
  match.insert(match.rfind('}'), ", \"" + key + "\": " + kSecond);
  return match;
}

TEST(Published, RowCanBeABoundWithItsOwnLimit) {
  const auto points = parse_published(
      table_text(point_text("a", R"("compare": "at_least", )" + std::string(kMatch)) + "," +
                 point_text("b", R"("compare": "at_most", "tolerance_percent": 5, )" + std::string(kMatch))),
      "p.json");
  EXPECT_EQ(points[0].value_text(), ">= 80");
  EXPECT_EQ(points[0].deviation_of(90), 0);
  EXPECT_NEAR(points[0].deviation_of(72), -10, 1e-9);
  EXPECT_EQ(points[0].limit_percent(), kCalibratedPercent);
  EXPECT_EQ(points[1].value_text(), "<= 80");
  EXPECT_NEAR(points[1].deviation_of(88), 10, 1e-9);
  EXPECT_EQ(points[1].limit_percent(), 5);
}

TEST(Published, RatioMatchesNoSingleRecord) {
  for (const char* key : {"over", "minus", "above", "below"}) {
    const auto points = parse_published(table_text(point_text("r", with_second(key))), "p.json");
    EXPECT_EQ(points[0].second->benchmark, "recv_rate");
    const Json good{{"connection", "UD"}, {"header_only", false}, {"size", 60}, {"threads", 12}};
    EXPECT_EQ(find_published(points, record_with(good)), nullptr);
  }
}

std::string with_curve(const std::string& along) {
  std::string match = with_second("over");
  match.insert(match.rfind('}'), R"(, "along": )" + along);
  return match;
}

TEST(Published, FigureCanBeAPositionOnACurve) {
  const auto along = [](const std::string& place) {
    return R"({"option": "threads", "values": [20, 40, 80, 100], "place": ")" + place + "\"}";
  };
  const auto place_of = [&](const std::string& place, const std::vector<double>& figures) {
    return parse_published(table_text(point_text("r", with_curve(along(place)))), "p.json")[0].along->find_position(
        figures);
  };
  // 90 % of the largest are reached at 40, and held up to 80.
  EXPECT_EQ(place_of("reaches", {5, 9.5, 10, 8}), 40);
  EXPECT_EQ(place_of("holds", {9.5, 10, 9, 8}), 80);
  EXPECT_EQ(place_of("holds", {5, 9, 10, 10}), std::nullopt);
  // At least 1 from 80 on: what comes before a fall back does not count.
  EXPECT_EQ(place_of("overtakes", {1.1, 0.9, 1, 1.3}), 80);
  EXPECT_EQ(place_of("overtakes", {1.1, 1.2, 1.2, 0.9}), std::nullopt);
  EXPECT_EQ(place_of("overtakes", {1, 1, 1, 1}), 20);
  const auto points = parse_published(table_text(point_text("r", with_curve(along("holds")))), "p.json");
  EXPECT_EQ(points[0].deviation_of(40), 0);  // 80 is published, a step further
  EXPECT_EQ(points[0].deviation_of(100), 0);
  EXPECT_EQ(points[0].deviation_of(20), -75);
  EXPECT_EQ(find_published(
                points, record_with(Json{{"connection", "UD"}, {"header_only", false}, {"size", 60}, {"threads", 12}})),
            nullptr);
}

TEST(Published, InvalidCurveIsAOneLineError) {
  const auto error = [](const std::string& along) {
    return error_of([&] { parse_published(table_text(point_text("r", with_curve(along))), "p.json"); });
  };
  EXPECT_THAT(error(R"({"option": "size", "values": [20, 80], "place": "near"})"),
              testing::HasSubstr(R"(expected reaches, holds or overtakes, got "near")"));
  EXPECT_THAT(error(R"({"option": "size", "values": [80, 20], "place": "holds"})"),
              testing::HasSubstr("each larger than the one before"));
  EXPECT_THAT(error(R"({"option": "size", "values": [20, 40], "place": "holds"})"),
              testing::HasSubstr("the row's value 80 is not among them"));
}

TEST(Published, RowWithoutProfileCanRunOnThisHost) {
  const std::string match = kMatch;
  const auto with_fabric = [&](const std::string& fabric) {
    std::string text = match;
    return text.insert(text.find('{') + 1, R"("fabric": ")" + fabric + R"(", )");
  };
  EXPECT_TRUE(parse_published(table_text(point_text("r", with_fabric("host"))), "p.json")[0].on_host);
  EXPECT_FALSE(parse_published(table_text(point_text("r", match)), "p.json")[0].on_host);
  EXPECT_THAT(error_of([&] { parse_published(table_text(point_text("r", with_fabric("verbs"))), "p.json"); }),
              testing::HasSubstr("expected host"));
}

TEST(Published, OnlyARowThatNeedsSomethingMayLackAValue) {
  std::string text = point_text("r", R"("needs": "the figure")");
  text.erase(text.find(R"("value": 80,)"), 12);
  EXPECT_EQ(parse_published(table_text(text), "p.json")[0].value_text(), "?");
}

TEST(Published, InvalidTableIsAOneLineError) {
  const auto error = [](const std::string& text) { return error_of([&] { parse_published(text, "p.json"); }); };
  EXPECT_EQ(error(table_text(point_text("r", R"("bottleneck": "x")"))),
            R"(p.json: points[0]: expected either "match" or "needs")");
  EXPECT_THAT(error(table_text(point_text("r", R"("needs": "x", "colour": 1)"))), testing::HasSubstr("colour"));
  EXPECT_THAT(error(table_text(point_text("r", R"("needs": "x", "known_miss": "y")"))),
              testing::HasSubstr("known_miss\": not allowed with"));
  EXPECT_THAT(error(table_text(point_text("r", R"("needs": "x", "compare": "near")"))),
              testing::HasSubstr(R"(expected equals, at_least or at_most, got "near")"));
  EXPECT_THAT(error(table_text(point_text("r", R"("needs": "x", "tolerance_percent": 0)"))),
              testing::HasSubstr("expected more than 0"));
  EXPECT_THAT(error(table_text(point_text(
                  "r", R"("match": {"predict": {"n": 1}, "metric": "m", "over": )" + std::string(kSecond) + "}"))),
              testing::HasSubstr("a figure of several runs needs benchmarks"));
  EXPECT_THAT(error(table_text(point_text(
                  "r", R"("match": {"benchmark": "b", "metric": "m", "config": {"n": {"min": 2, "run": 1}}})"))),
              testing::HasSubstr("is not within min and max"));
}

TEST(Published, ProjectTableIsValid) {
  const auto points = load_published();
  EXPECT_EQ(points.size(), 145u);
  const auto count = [&](auto predicate) { return std::ranges::count_if(points, predicate); };
  const std::map<std::string, int> rows{{"send_rate", 10},  {"recv_rate", 6},  {"read_rate", 5},    {"write_rate", 10},
                                        {"atomic_rate", 3}, {"sequencer", 8},  {"verb_latency", 6}, {"kv_rate", 26},
                                        {"lookup_rate", 3}, {"qp_scaling", 3}, {"echo_rate", 5},    {"incast_rate", 6},
                                        {"rpc_rate", 12},   {"rpc_large", 5},  {"rpc_incast", 6},   {"ordered_kv", 3}};
  for (const auto& [benchmark, expected] : rows) {
    EXPECT_EQ(count([&name = benchmark](const PublishedPoint& p) { return p.run.benchmark == name; }), expected)
        << benchmark;
  }
  EXPECT_EQ(count([](const PublishedPoint& p) { return p.reproducible() && p.modelled(); }), 4);
  std::set<std::string> ids;
  for (const PublishedPoint& p : points) EXPECT_TRUE(ids.insert(p.id).second) << p.id;
}

TEST(Published, DeviationsHaveASignUnlessZero) {
  EXPECT_EQ(percent_text(deviation_percent(82, 80)), "+2.5");
  EXPECT_EQ(percent_text(deviation_percent(79.2, 80)), "-1.0");
  EXPECT_EQ(percent_text(deviation_percent(80.01, 80)), "0.0");
  EXPECT_EQ(percent_text(std::numeric_limits<double>::infinity()), "+inf");
}

}  // namespace
}  // namespace verbscope
