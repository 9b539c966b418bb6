// Knees and cliffs, from records by hand whose loads are known.
#include "analysis/limit_changes.hpp"

#include <gmock/gmock.h>

#include "pcie_model/predict.hpp"
#include "tests/analysis/records.hpp"

namespace verbscope {
namespace {

// A simulated run of a microsecond in which 16 units and the link to the NIC were in use for these shares, and in which
// each operation had so many lines of WQEs read again (1000 operations are in the window).
Record with_busy(double units, double link, double reread_lines_per_op = 0) {
  Record record = sweep_record(Json{{"connection", "UD"}, {"qp", 1}, {"threads", 2}}, 80);
  record.result["window_s"] = 1e-6;
  record.prediction =
      to_json(predict_requester(cib(), {.verb = Verb::send, .transport = Transport::ud, .payload = Bytes(60)}));
  CounterReport report{.source = "sim", .node = "server", .blind = "", .window_s = 1e-6, .events = {}};
  report.extra = Json{{"pcie_to_nic_busy_ps", 1e6 * link},
                      {"requester_units", 16},
                      {"responder_units", 16},
                      {"read_tags", 64},
                      {"requester_busy_ps", 16e6 * units},
                      {"requester_busiest_unit_ps", 1e6 * units},
                      {"wqe_cache_reread_lines", 1000 * reread_lines_per_op}};
  record.counters = {report};
  return record;
}

TEST(LimitChanges, AKneeHasTheLimitFromThereOn) {
  const Record units = with_busy(1, 0.2), link = with_busy(0.2, 1);
  const std::vector<LimitChange> changes =
      limit_changes({{16, 80, &units}, {32, 80, &units}, {64, 60, &link}, {128, 30, &link}});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].x, 64);
  EXPECT_EQ(changes[0].y, 60);
  EXPECT_THAT(changes[0].cause, testing::HasSubstr("PCIe bandwidth to the NIC"));
}

TEST(LimitChanges, ACliffIsPutDownToWqesThatAreReadAgain) {
  const Record before = with_busy(1, 0.2), behind = with_busy(1, 0.2, 0.7);
  const std::vector<LimitChange> changes = limit_changes({{40, 100, &before}, {48, 60, &behind}, {56, 50, &behind}});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].x, 48);
  EXPECT_THAT(changes[0].cause, testing::AllOf(testing::HasSubstr("WQE cache"), testing::HasSubstr("0.7")));
}

TEST(LimitChanges, OneLimitIsNoChange) {
  const Record units = with_busy(1, 0.2);
  EXPECT_TRUE(limit_changes({{16, 80, &units}, {32, 80, &units}}).empty());
}

}  // namespace
}  // namespace verbscope
