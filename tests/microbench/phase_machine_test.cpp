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
  void turn(Phase phase) override { calls.emplace_back(to_string(phase)); }
  void turn_peers(Phase phase) override { calls.emplace_back(std::string("peers ") + to_string(phase)); }
  bool goes_on() override { return unsteady_windows-- > 0; }
  bool gave_up() const override { return out_of_time; }
  void end_threads() override { calls.emplace_back("end threads"); }
  PointReports collect(std::string&) override { return {}; }

  // Ends the wait for `step`, which must be the present one.
  void over(Step step) {
    ASSERT_EQ(steps.back(), step);
    calls.clear();
    std::exchange(pending, nullptr)();
  }

  int unsteady_windows = 0;
  bool out_of_time = false;
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

// The window, from its begin to the moment at which it is judged.
void pass_window(Point& point) {
  EXPECT_THAT(point.link.calls, ElementsAre("begin", "measure", "peers measure"));
  point.link.over(Step::open);
  point.link.over(Step::first_half);
  EXPECT_THAT(point.link.calls, ElementsAre("halved", "peers halved"));
  point.link.over(Step::halve);
  point.link.over(Step::second_half);
  EXPECT_THAT(point.link.calls, ElementsAre("end", "closed", "peers closed"));
  point.link.over(Step::close);
}

// Threads note each turn in traffic that still flows; only then is it stopped.
TEST(PhaseMachine, StopsWhenTheWindowIsNoted) {
  for (const bool server_sends : {true, false}) {
    Point point(server_sends);
    point.link.over(Step::warm_up);
    pass_window(point);
    EXPECT_THAT(point.link.calls, ElementsAre("stop", "peers stop"));
    point.link.over(Step::end);
    point.link.over(Step::drain);
    EXPECT_THAT(point.link.calls, ElementsAre("end threads"));
    EXPECT_EQ(point.link.pending, nullptr);
  }
}

TEST(PhaseMachine, MeasuresAgainWhereTheRateWasNotSteady) {
  Point point(true);
  point.link.unsteady_windows = 2;
  point.link.over(Step::warm_up);
  pass_window(point);
  pass_window(point);
  pass_window(point);
  EXPECT_THAT(point.link.calls, ElementsAre("stop", "peers stop"));
}

TEST(PhaseMachine, StopsWhenThePointIsOutOfTime) {
  Point point(true);
  point.link.over(Step::warm_up);
  point.link.out_of_time = true;
  point.link.over(Step::open);
  EXPECT_THAT(point.link.calls, ElementsAre("end", "stop", "peers stop"));
}

}  // namespace
}  // namespace verbscope
