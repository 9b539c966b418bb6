// Knees and cliffs of hand-made curves, and their causes.
#include "analysis/rate_changes.hpp"

#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

// A point of the curve whose adapters re-read this many WQE lines in 1000 operations.
Record point_at(double x, double rate, double rereads = 0) {
  Record record = sweep_record(Json{{"threads", x}}, rate);
  CounterReport report{.source = "sim", .node = "server", .blind = "", .window_s = 0.001, .events = {}};
  report.extra["wqe_cache_reread_lines"] = rereads;
  record.counters = {report};
  return record;
}

std::vector<std::string> texts(const std::string& option, const std::vector<Record>& records) {
  std::vector<BendPoint> points;
  for (const Record& record : records) {
    points.push_back({record.config.at("threads"), record.result.at("rate_mops"), &record, "the wire"});
  }
  std::vector<std::string> out;
  for (const Bend& bend : bends_along(option, points)) out.push_back(bend.text());
  return out;
}

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

TEST(Bends, CliffCauseComesFromTheCounters) {
  EXPECT_THAT(texts("threads", {point_at(32, 100), point_at(40, 98), point_at(48, 70, 700), point_at(64, 60, 900)}),
              ElementsAre("cliff at 48 threads: WQE cache, 0.7 re-reads per operation"));
}

// Each kernel driver has its own name for the counter.
TEST(Bends, CliffCauseComesFromCountersOfAnyDriver) {
  for (const auto& [counter, cause] :
       std::vector<std::pair<std::string, std::string>>{{"port1/hw_counters/out_of_buffer", "too few RECVs"},
                                                        {"hw_counters/rq_num_rnr", "too few RECVs"},
                                                        {"port1/hw_counters/oos_drop_count", "loss"},
                                                        {"port1/hw_counters/retrans_pkts", "loss"},
                                                        {"port1/hw_counters/cnpHandled", "rates limited by DCQCN"}}) {
    Record before = point_at(32, 100), after = point_at(48, 50);
    before.counters[0].extra[counter] = 0;
    after.counters[0].extra[counter] = 500;
    EXPECT_THAT(texts("threads", {before, after}), ElementsAre(testing::HasSubstr(": " + cause + ", ")));
  }
}

TEST(Bends, KneeIsTheFirstPointWithNineTenthsOfThePeak) {
  EXPECT_THAT(texts("threads", {point_at(1, 10), point_at(2, 20), point_at(4, 38), point_at(8, 40)}),
              ElementsAre("knee at 4 threads: the wire"));
  EXPECT_THAT(texts("post_list", {point_at(1, 10), point_at(2, 20), point_at(4, 40)}), IsEmpty())
      << "nothing shows that it has stopped to rise";
}

// 32 B * 80 Mops and 64 B * 40 Mops are the same bytes: no cliff, the wire or PCIe is full. At 96 B fewer bytes move.
TEST(Bends, AlongThePayloadACliffNeedsADropInBytes) {
  EXPECT_THAT(texts("size", {point_at(16, 80), point_at(32, 80), point_at(64, 40)}),
              ElementsAre(StartsWith("knee at 32 B: ")));
  EXPECT_THAT(texts("size", {point_at(16, 80), point_at(32, 80), point_at(64, 30)}),
              ElementsAre(StartsWith("cliff at 64 B: ")));
}

TEST(Bends, TwoPointsCanHaveACliffButNoKnee) {
  EXPECT_THAT(texts("threads", {point_at(1, 10), point_at(2, 5)}), ElementsAre("cliff at 2 threads: the wire"));
  EXPECT_THAT(texts("threads", {point_at(1, 5), point_at(2, 10)}), IsEmpty());
}

TEST(Bends, FlatCurveHasNoBend) {
  EXPECT_THAT(texts("threads", {point_at(1, 10), point_at(2, 9.5), point_at(4, 9.8)}), IsEmpty());
}

}  // namespace
}  // namespace verbscope
