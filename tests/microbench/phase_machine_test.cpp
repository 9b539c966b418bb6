// The order of events of a point, as a link sees it.
#include "microbench/run/phase_machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/test_benchmarks.hpp"
#include "verbs/null/provider.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;

// Writes down what is asked of it; a wait is over when the test says so.
class ScriptedLink final : public Link {
 public:
  void connect() override { calls.emplace_back("connect"); }
  void gather() override { calls.emplace_back("gather"); }
  void start() override { calls.emplace_back("start"); }
  void await(Step step, std::function<void()> then) override {
    steps.push_back(step);
    pending = std::move(then);
  }
  void begin_window() override { calls.emplace_back("begin"); }
  void end_window() override { calls.emplace_back("end"); }
  void turn(Phase phase) override { calls.emplace_back(phase == Phase::measure ? "measure" : "stop"); }
  void turn_peers(Phase phase) override {
    calls.emplace_back(phase == Phase::measure ? "peers measure" : "peers stop");
  }
  void end_threads() override { calls.emplace_back("end threads"); }
  PointReports collect(std::string&) override { return {}; }

  // Ends the wait for `step`, which must be the present one.
  void over(Step step) {
    ASSERT_EQ(steps.back(), step);
    calls.clear();
    std::exchange(pending, nullptr)();
  }

  std::vector<std::string> calls;
  std::vector<Step> steps;
  std::function<void()> pending;
};

struct Point {
  test::SendBenchmark benchmark;
  NullProvider device;
  NodeRun server;
  ScriptedLink link;
  PhaseMachine machine{server, link};

  explicit Point(bool server_sends) : benchmark(server_sends), server(make_server()) {
    server.connect_alone();
    machine.run();
  }
  NodeRun make_server() {
    const test::OptionSet set("--fabric null -c UD");
    FabricFacts facts;
    facts.alone = true;
    const Plan plan = make_plan(set.options, facts, benchmark.traffic());
    return {benchmark, plan, Side::server, 0, {&device, "null0", {1}, -1, {}, false, true}};
  }
};

TEST(PhaseMachine, ConnectsAndStartsBeforeItWaits) {
  Point point(true);
  EXPECT_THAT(point.link.calls, ElementsAre("connect", "gather", "start"));
  EXPECT_THAT(point.link.steps, ElementsAre(Step::warm_up));
}

TEST(PhaseMachine, StopsEverybodyAtOnceWhenTheServerSends) {
  Point point(true);
  point.link.over(Step::warm_up);
  EXPECT_THAT(point.link.calls, ElementsAre("begin", "measure", "peers measure"));
  point.link.over(Step::open);
  point.link.over(Step::measure);
  EXPECT_THAT(point.link.calls, ElementsAre("end", "stop", "peers stop"));
  point.link.over(Step::close);
  EXPECT_THAT(point.link.calls, ElementsAre());
  point.link.over(Step::end);
  point.link.over(Step::drain);
  EXPECT_THAT(point.link.calls, ElementsAre("end threads"));
  EXPECT_EQ(point.link.pending, nullptr);
}

// A receiver sees the end of its window in traffic that still flows.
TEST(PhaseMachine, StopsThoseThatSendToAReceiverAfterItsWindow) {
  Point point(false);
  point.link.over(Step::warm_up);
  point.link.over(Step::open);
  point.link.over(Step::measure);
  EXPECT_THAT(point.link.calls, ElementsAre("end", "stop"));
  point.link.over(Step::close);
  EXPECT_THAT(point.link.calls, ElementsAre("peers stop"));
}

}  // namespace
}  // namespace verbscope
