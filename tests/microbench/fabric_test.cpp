// The order of the phases of a point, as a link sees them.
#include "microbench/run/fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/microbench/test_benchmarks.hpp"
#include "verbs/null/provider.hpp"

namespace verbscope {
namespace {

using testing::ElementsAreArray;

const char* name_of(Step step) {
  constexpr const char* kNames[] = {"wait warm-up",     "wait open",  "wait first half", "wait halve",
                                    "wait second half", "wait close", "wait end",        "wait drain"};
  return kNames[static_cast<std::size_t>(step)];
}

// Records the calls.
class ScriptedLink final : public Link {
 public:
  void run(const std::function<void()>& phases) override { phases(); }
  void connect() override { calls.emplace_back("connect"); }
  void gather() override { calls.emplace_back("gather"); }
  void start() override { calls.emplace_back("start"); }
  bool wait(Step step) override {
    calls.emplace_back(name_of(step));
    out_of_time = out_of_time || step == out_of_time_at;
    return !out_of_time;
  }
  void begin_interval() override { calls.emplace_back("begin"); }
  void end_interval() override { calls.emplace_back("end"); }
  void turn(Phase phase) override { calls.emplace_back(to_string(phase)); }
  bool goes_on() override { return unsteady_intervals-- > 0; }
  void end_threads() override { calls.emplace_back("end threads"); }
  PointReports collect(std::string&) override { return {}; }

  int unsteady_intervals = 0;
  std::optional<Step> out_of_time_at;
  bool out_of_time = false;
  std::vector<std::string> calls;
};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<std::string> kBegin = {"connect", "gather", "start", "wait warm-up"};
const std::vector<std::string> kInterval = {"begin",  "measure",    "wait open",        "wait first half",
                                            "halved", "wait halve", "wait second half", "end",
                                            "closed", "wait close"};
const std::vector<std::string> kStop = {"stop", "wait end", "wait drain", "end threads"};

std::vector<std::string> calls_of(ScriptedLink link, bool server_sends = true, const std::string& line = "") {
  test::SendBenchmark benchmark(server_sends);
  NullProvider device;
  const test::OptionSet set("--fabric null -c UD " + line);
  FabricFacts facts;
  facts.alone = true;
  const Plan plan = make_plan(set.options, facts, benchmark.draft());
  const NodeRun server(benchmark, plan, Side::server, 0, {&device, "null0", {1}, -1, {}, false, true});
  run_phases(server, link);
  return link.calls;
}

// Threads note each phase while the traffic flows; only then is it stopped.
TEST(Phases, MeasureAnIntervalInTwoHalvesThenStop) {
  for (const bool server_sends : {true, false}) {
    EXPECT_THAT(calls_of({}, server_sends), ElementsAreArray(kBegin + kInterval + kStop));
  }
}

TEST(Phases, HaveNoHalvesIfThreadsEndTheInterval) {
  EXPECT_THAT(calls_of({}, true, "-n 640"),
              ElementsAreArray(kBegin +
                               std::vector<std::string>{"begin", "measure", "wait open", "wait second half", "end",
                                                        "closed", "wait close"} +
                               kStop));
}

TEST(Phases, MeasureAgainIfTheRateWasNotSteady) {
  ScriptedLink link;
  link.unsteady_intervals = 2;
  EXPECT_THAT(calls_of(link), ElementsAreArray(kBegin + kInterval + kInterval + kInterval + kStop));
}

TEST(Phases, StopIfThePointRunsOutOfTime) {
  ScriptedLink link;
  link.out_of_time_at = Step::open;
  EXPECT_THAT(calls_of(link),
              ElementsAreArray(kBegin + std::vector<std::string>{"begin", "measure", "wait open", "end"} + kStop));
  link.out_of_time_at = Step::close;
  EXPECT_THAT(calls_of(link), ElementsAreArray(kBegin + kInterval + kStop));
}

}  // namespace
}  // namespace verbscope
