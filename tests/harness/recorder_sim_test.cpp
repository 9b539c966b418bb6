// The record of `verbscope simulate`: which interval it takes for the busiest, and its rate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/simulate/recorder.hpp"
#include "tests/nic_sim/two_nodes.hpp"

namespace verbscope {
namespace {

using namespace std::chrono_literals;

// Two nodes whose QPs send datagrams, which nobody receives.
struct Traffic {
  test::Pair pair{IBV_QPT_UD};
  ibv_ah* back = pair.b.make_ah(0);
  Recorder recorder{pair.cluster};
  int sent = 0;

  void pause(Picos time, Picos step) {
    for (Picos passed{0}; passed < time; passed += step) {
      recorder.look();
      pair.pass(step);
    }
  }
  // One message each `period`, from node 0 or node 1.
  void send(int messages, Picos period, bool from_first = true) {
    for (int i = 0; i < messages; ++i) {
      recorder.look();
      const int error =
          from_first ? pair.send({.length = 8}) : pair.b.post(pair.qb, {.length = 8}, back, pair.qa->qp_num);
      ASSERT_EQ(error, 0);
      pair.pass(period);
      pair.a.poll_sends();
      pair.b.poll_sends();
    }
  }
  Record record() {
    Record made;
    recorder.complete(made, pair.profile);
    return made;
  }
};

double number(const Record& record, const char* key) {
  return record.result.at(key).get<double>();
}

TEST(Recorder, RatesTheTimeWithMessages) {
  Traffic traffic;
  traffic.pause(200us, 1us);
  traffic.send(300, 1us);
  traffic.pause(500us, 1us);
  const Record record = traffic.record();
  EXPECT_NEAR(number(record, "rate_mops"), 1, 0.02);
  EXPECT_GT(number(record, "window_s"), 280e-6);
  EXPECT_GE(number(record, "window_begin_s"), 200e-6 - 5e-6);
  EXPECT_LE(number(record, "window_begin_s") + number(record, "window_s"), 500e-6 + 10e-6);
  EXPECT_NEAR(number(record, "window_ops"), number(record, "rate_mops") * 1e6 * number(record, "window_s"), 1e-6);
  EXPECT_NEAR(number(record, "simulated_s"), 1e-3, 30e-6);
}

// Half of the messages are sent at most at the usual rate: a burst is not.
TEST(Recorder, DoesNotTakeABurstForTheUsualRate) {
  Traffic traffic;
  traffic.send(40, 200ns);
  traffic.send(200, 2us);
  EXPECT_NEAR(number(traffic.record(), "rate_mops"), 0.5, 0.1);
}

// As READs of 64 KB: a window of them is sent at once, and then one when another is back, with many looks between.
TEST(Recorder, DoesNotTakeTheTimeBetweenRareMessagesForPauses) {
  Traffic traffic;
  traffic.send(16, 200ns);
  for (int i = 0; i < 200; ++i) {
    traffic.send(1, 1us);
    traffic.pause(39us, 1us);
  }
  const Record record = traffic.record();
  EXPECT_GT(number(record, "rate_mops"), 0.99 / 40);
  EXPECT_LT(number(record, "rate_mops"), 1.01 * 216 / 8000);  // with the first ones
  EXPECT_GT(number(record, "window_s"), 190 * 40e-6);
}

TEST(Recorder, DoesNotLoseAShortMeasurementBetweenLongPauses) {
  Traffic traffic;
  traffic.pause(500ms, 1ms);
  traffic.send(300, 1us);
  traffic.pause(500ms, 1ms);
  const Record record = traffic.record();
  EXPECT_NEAR(number(record, "rate_mops"), 1, 0.05);
  EXPECT_NEAR(number(record, "window_begin_s"), 0.5, 1e-3);
  EXPECT_LT(number(record, "window_s"), 320e-6);
}

// More parts than are kept: pairs of them are joined.
TEST(Recorder, KeepsTheRateOfALongMeasurement) {
  Traffic traffic;
  traffic.send(2000, 2us);
  const Record record = traffic.record();
  EXPECT_NEAR(number(record, "rate_mops"), 0.5, 0.01);
  EXPECT_GT(number(record, "window_s"), 3.8e-3);
}

TEST(Recorder, TakesTheLongerOfTwoMeasurements) {
  Traffic traffic;
  traffic.send(100, 1us);
  traffic.pause(100us, 1us);
  traffic.send(300, 1us);
  const Record record = traffic.record();
  EXPECT_GE(number(record, "window_begin_s"), 200e-6 - 5e-6);
  EXPECT_NEAR(number(record, "rate_mops"), 1, 0.05);
}

TEST(Recorder, CallsTheNodeWithMostMessagesTheServer) {
  Traffic traffic;
  traffic.send(50, 1us);
  traffic.send(250, 1us, false);
  const Record record = traffic.record();
  EXPECT_EQ(record.result.at("nodes"),
            (Json{{{"node", "server"}, {"program", "node1"}}, {{"node", "client0"}, {"program", "node0"}}}));
  ASSERT_EQ(record.counters.size(), 2u);
}

TEST(Recorder, HasNoRateWithoutMessages) {
  Traffic traffic;
  traffic.pause(100us, 1us);
  const Record record = traffic.record();
  EXPECT_EQ(number(record, "rate_mops"), 0);
  EXPECT_EQ(number(record, "window_ops"), 0);
  EXPECT_NEAR(number(record, "window_s"), 100e-6, 5e-6);
}

}  // namespace
}  // namespace verbscope
