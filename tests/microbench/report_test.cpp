// Reports are sent as JSON and read back, and are combined into one result.
#include "microbench/run/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "microbench/run/report_fields.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NodeReport client_report() {
  NodeReport report;
  report.node = "client0";
  report.window_s = 0.5;
  report.threads = {{.core = 3, .rate_mops = 2, .ops = 1'000'000, .window_s = 0.5, .rounds = 7.5}};
  report.rate_mops = 2;
  report.window_ops = report.ops = 1'000'000;
  report.findings = Json{{"swaps_tried", 12}, {"order", {{"passes", 1}}}};
  report.cpu = {0.25, 0.25, 1};
  report.cq_armings = 9;
  report.delivery = {.expected = 10, .received = 8, .validation = {.checked = 8, .wrong = 1}};
  return report;
}

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> names;
  for (const auto& [key, value] : json.items()) names.push_back(key);
  return names;
}

TEST(Report, IsReadBackAsItWasWritten) {
  NodeReport report = client_report();
  report.delivery.crosses = true;
  const Json written = fields_to_json(report);
  const NodeReport read = fields_from_json<NodeReport>(written, "report");
  EXPECT_EQ(fields_to_json(read), written);
  EXPECT_EQ(read.delivery.validation.wrong, 1u);  // also without --validate
  EXPECT_EQ(read.findings, report.findings);
}

TEST(Report, HasTheKeysOfTheRecordInTheirOrder) {
  const Json json = fields_to_json(client_report());
  EXPECT_THAT(keys(json),
              ElementsAre("window_s", "threads", "rate_mops", "window_ops", "ops", "swaps_tried", "order", "cpu",
                          "cq_armings", "messages_expected", "messages_received", "lost", "validation"));
  EXPECT_THAT(keys(json.at("threads")[0]), ElementsAre("core", "rate_mops", "ops", "window_s", "rounds"));
  EXPECT_EQ(json.at("lost"), 2);
  EXPECT_TRUE(json.at("validation").is_null());
}

TEST(Report, NamesAMissingField) {
  Json json = fields_to_json(client_report());
  json.erase("ops");
  EXPECT_THAT(message_of<Error>([&] { fields_from_json<NodeReport>(json, "message result"); }), HasSubstr("\"ops\""));
}

TEST(Report, OnTheNullDeviceCountsNoMessages) {
  NodeReport report = client_report();
  report.has_peers = false;
  EXPECT_FALSE(fields_to_json(report).contains("messages_expected"));
}

PointReports point() {
  PointReports reports{.own = client_report(), .clients = std::vector{client_report()}};
  reports.own.node = "server";
  reports.own.rate_mops = 100;
  return reports;
}

TEST(Report, RateIsThatOfTheCountedSide) {
  Plan plan;
  std::string failure;
  EXPECT_EQ(make_result(point(), plan, failure).own.rate_mops, 100);
  plan.operation.counted = Side::client;
  const PointReports of_clients = make_result(point(), plan, failure);
  EXPECT_EQ(of_clients.own.rate_mops, 2);
  EXPECT_EQ(of_clients.own.threads.at(0).node, "client0");
}

TEST(Report, PointSumsMessagesAndFailsIfOneIsWrongOrLost) {
  Plan plan;
  std::string failure;
  const PointReports result = make_result(point(), plan, failure);
  EXPECT_EQ(result.own.delivery.lost(), 4u);
  EXPECT_THAT(failure, HasSubstr("2 of 16 messages had a wrong length"));
  EXPECT_EQ(result_json(result).at("clients")[0].at("node"), "client0");
}

}  // namespace
}  // namespace verbscope
