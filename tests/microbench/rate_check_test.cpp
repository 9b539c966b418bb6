// A point fails if its rate contradicts the adapters or the model.
#include "microbench/run/rate_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbscope {
namespace {

using testing::HasSubstr;

const OperationCount kSent{Side::server, "messages_sent"};

// 10 Mops by the threads over 1 ms, and `messages` that the server's adapter counted in it.
Outcome outcome_with(std::uint64_t messages) {
  Outcome outcome;
  outcome.result = Json{{"rate_mops", 10.0}, {"ops", 10'000}};
  for (const char* node : {"server", "client0"}) {
    CounterReport report;
    report.node = node;
    report.window_s = 1e-3;
    report.extra["messages_sent"] = node == std::string("server") ? messages : 7;
    outcome.counters.push_back(report);
  }
  return outcome;
}

std::string failure_by_counters(std::uint64_t messages, bool threads_end_it = false) {
  Outcome outcome = outcome_with(messages);
  Schedule schedule;
  schedule.threads_end_it = threads_end_it;
  check_against_counters(kSent, schedule, true, outcome);
  EXPECT_DOUBLE_EQ(outcome.result.at("adapter_mops").get<double>(), static_cast<double>(messages) * 1e-3);
  return outcome.failure;
}

TEST(RateCheck, AdaptersAndThreadsAgreeWithinAPercent) {
  EXPECT_EQ(failure_by_counters(9'901), "");
  EXPECT_EQ(failure_by_counters(10'099), "");
  EXPECT_THAT(failure_by_counters(9'800),
              HasSubstr("10 Mops by the threads and 9.8 Mops by the adapters' messages_sent"));
  EXPECT_THAT(failure_by_counters(10'300), HasSubstr("differ by more than 1 %"));
}

// If threads end the interval, the adapters may count more operations than the threads, but not fewer.
TEST(RateCheck, AdaptersCountAtLeastTheOperationsOfThreadsThatEnd) {
  EXPECT_EQ(failure_by_counters(12'000, true), "");
  EXPECT_THAT(failure_by_counters(5'000, true), HasSubstr("counted 10000 operations, the adapters 5000"));
}

// With --iters the interval may be short, and its rate too high or too low.
TEST(RateCheck, TooFewItersFailThePoint) {
  const auto failure = [](std::uint64_t messages, std::uint64_t ops, bool of_payloads = true) {
    Outcome outcome = outcome_with(messages);
    outcome.result["ops"] = ops;
    check_against_counters(kSent, {.iters = ops, .threads_end_it = true}, of_payloads, outcome);
    return outcome.failure;
  };
  EXPECT_EQ(failure(11'700, 10'000), "");
  EXPECT_EQ(failure(8'700, 10'000), "");
  EXPECT_THAT(failure(11'900, 10'000), HasSubstr("too few --iters for a rate"));
  EXPECT_THAT(failure(8'600, 10'000), HasSubstr("10 Mops by the threads, and the adapters' messages_sent were 8.6"));
  EXPECT_EQ(failure(11'900, 10'000, false), "");  // requests of a system, of which the adapters have counted all
}

TEST(RateCheck, RateIsNotCheckedWithoutACounter) {
  Outcome outcome = outcome_with(1);
  check_against_counters(std::nullopt, Schedule{}, true, outcome);
  EXPECT_EQ(outcome.failure, "");
  EXPECT_FALSE(outcome.result.contains("adapter_mops"));
}

// A server that sent 10 Mops of SENDs over UD in 1 s, whose port counted `packets` out and `back` in.
Outcome host_outcome(std::uint64_t packets, std::uint64_t back, double background = 0) {
  Outcome outcome;
  outcome.result = Json{{"rate_mops", 10.0}};
  CounterReport report;
  report.source = "nic";
  report.node = "server";
  report.window_s = 1;
  report.extra =
      Json{{"net", {{"port1/counters/port_xmit_packets", packets}, {"port1/counters/port_rcv_packets", back}}},
           {"background_per_s", {{"port1/counters/port_xmit_packets", background}}}};
  outcome.counters.push_back(report);
  return outcome;
}

std::string failure_by_ports(Outcome outcome, Transport transport, std::uint32_t payload) {
  Plan plan;
  plan.operation.transport = transport;
  plan.operation.payload = payload;
  check_against_ports(plan, 2048, outcome);
  return outcome.failure;
}

TEST(RateCheck, RateAgreesWithThePacketsOfThePorts) {
  EXPECT_EQ(failure_by_ports(host_outcome(10'050'000, 20), Transport::ud, 64), "");
  EXPECT_THAT(failure_by_ports(host_outcome(9'000'000, 20), Transport::ud, 64), HasSubstr("9 Mops by the packets"));
  EXPECT_EQ(failure_by_ports(host_outcome(30'000'000, 20), Transport::uc, 4097), "");  // three packets each
}

TEST(RateCheck, PortsWithOtherTrafficAreIgnored) {
  EXPECT_EQ(failure_by_ports(host_outcome(9'000'000, 20, 50'000), Transport::ud, 64), "");  // in the background
  EXPECT_EQ(failure_by_ports(host_outcome(9'000'000, 9'000'000), Transport::ud, 64), "");   // both ends are here
  EXPECT_EQ(failure_by_ports(host_outcome(9'000'000, 20), Transport::rc, 64), "");          // acknowledged
}

TEST(RateCheck, RateAboveTheBoundOfTheModelFails) {
  Outcome outcome = outcome_with(10'000);
  outcome.prediction = Json{{"bound_mops", 9.95}, {"binding", "wire_out"}};
  check_against_bounds("rate_mops", outcome);
  EXPECT_EQ(outcome.failure, "");
  outcome.prediction["bound_mops"] = 9.8;
  check_against_bounds("rate_mops", outcome);
  EXPECT_THAT(outcome.failure, HasSubstr("10 Mops is above the 9.8 Mops that wire_out allows"));
}

}  // namespace
}  // namespace verbscope
