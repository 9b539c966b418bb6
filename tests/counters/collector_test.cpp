// Every requested source gets a report, and a required source that is missing fails the run.
#include "counters/collector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "common/error.hpp"
#include "counters/sources.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A source that fails at the given step.
class Source final : public CounterSource {
 public:
  enum class Fails { never, start, background, attach, window, report };
  Source(std::string name, Fails fails) : name_(std::move(name)), fails_(fails) {}
  std::string name() const override { return name_; }
  void start() override { step(Fails::start); }
  bool background_done() override {
    step(Fails::background);
    return ++polls_ >= 3;
  }
  void attach(const std::vector<int>&) override { step(Fails::attach); }
  void read(Moment moment) override {
    if (moment == Moment::window_begin) step(Fails::window);
  }
  CounterReport report(double) override {
    step(Fails::report);
    return make_report(name_, "", {.window_s = 1, .raw = {{"a", 1}}, .background_s = 1, .background_per_s = {}}, {});
  }

 private:
  void step(Fails here) const {
    if (fails_ == here) fail("the cat sat on {}", name_);
  }
  std::string name_;
  Fails fails_;
  int polls_ = 0;
};

std::vector<std::unique_ptr<CounterSource>> sources(Source::Fails fails) {
  std::vector<std::unique_ptr<CounterSource>> sources;
  sources.push_back(std::make_unique<Source>("good", Source::Fails::never));
  sources.push_back(std::make_unique<Source>("bad", fails));
  return sources;
}

Collector::Collected run(Collector& collector) {
  collector.measure_background();
  collector.attach({1});
  collector.begin_window();
  collector.end_window();
  return collector.collect(0);
}

class FailsAt : public testing::TestWithParam<Source::Fails> {};

TEST_P(FailsAt, ReportsTheReasonAndOtherSourcesStillCount) {
  Collector collector("client3", sources(GetParam()), CountersNeeded::one);
  const auto collected = run(collector);
  EXPECT_EQ(collected.failure, "");
  ASSERT_EQ(collected.reports.size(), 2u);
  EXPECT_EQ(collected.reports[0].blind, "");
  EXPECT_EQ(collected.reports[0].node, "client3");
  EXPECT_GE(collected.reports[0].extra.at("read_pair_ns").get<double>(), 0);
  EXPECT_EQ(collected.reports[1].node, "client3");
  EXPECT_EQ(collected.reports[1].source, "bad");
  EXPECT_EQ(collected.reports[1].blind, "nothing counted: the cat sat on bad");
  EXPECT_EQ(collected.reports[1].window_s, 0);
}

TEST_P(FailsAt, FailsTheRunIfTheSourceIsRequired) {
  const std::string line = "client3: counters of bad are required: the cat sat on bad";
  Collector collector("client3", sources(GetParam()), CountersNeeded::all);
  if (GetParam() <= Source::Fails::attach) {
    EXPECT_EQ(message_of<Error>([&] { run(collector); }), line);  // before anything is measured
  } else {
    const auto collected = run(collector);
    EXPECT_EQ(collected.failure, line);
    EXPECT_EQ(collected.reports.size(), 2u);
  }
}

TEST_P(FailsAt, FailsTheRunIfNoSourceCounts) {
  std::vector<std::unique_ptr<CounterSource>> bad;
  bad.push_back(std::make_unique<Source>("bad", GetParam()));
  Collector collector("server", std::move(bad), CountersNeeded::one);
  const auto collected = run(collector);
  EXPECT_THAT(collected.failure, HasSubstr("bad: the cat sat on bad"));
  EXPECT_EQ(collected.reports.size(), 1u);
}

std::string name_of(Source::Fails fails) {
  constexpr std::array kNames{"never", "start", "background", "attach", "window", "report"};
  return kNames[static_cast<std::size_t>(fails)];
}

INSTANTIATE_TEST_SUITE_P(, FailsAt,
                         testing::Values(Source::Fails::start, Source::Fails::background, Source::Fails::attach,
                                         Source::Fails::window, Source::Fails::report),
                         [](const auto& fails) { return name_of(fails.param); });

TEST(CountersNeeded, RequiresOneNamedSourceOnTheServer) {
  EXPECT_EQ(counters_needed("pcm-pcie", false, "server"), CountersNeeded::one);
  EXPECT_EQ(counters_needed("pcm-pcie", false, "client0"), CountersNeeded::none);
  EXPECT_EQ(counters_needed("auto", false, "server"), CountersNeeded::none);
  EXPECT_EQ(counters_needed("auto", true, "client0"), CountersNeeded::all);
}

TEST(ParseCounters, AcceptsAutoNoneAndListsOfSources) {
  const auto parse = [](const std::string& text, bool device) {
    return parse_counters(text, "--counter_sources", device);
  };
  std::vector<std::string> auto_sources = counter_sources();
  // Excluded from auto: they must be installed or set up, or cost the benchmark instructions.
  for (const char* name : {"neo-host", "rdma-statistic", "driver"}) std::erase(auto_sources, name);
  EXPECT_EQ(parse("auto", true), auto_sources);
  EXPECT_THAT(parse("auto", false), IsEmpty());
  EXPECT_THAT(parse("none", true), IsEmpty());
  EXPECT_THAT(parse("nic,pcm-pcie", false), ElementsAre("pcm-pcie", "nic"));
  for (const char* text : {"", "cat", "nic,", ",nic", "nic,nic", "nic papi", "auto,nic", "NIC"}) {
    EXPECT_THAT(
        message_of<UsageError>([&] { parse(text, true); }),
        HasSubstr(
            std::string("--counter_sources: expected auto, none or a list of pcm-pcie, pcm-iio, papi, nic, neo-host, "
                        "rdma-statistic, driver, "
                        "each once; got \"") +
            text + "\""))
        << text;
  }
}

}  // namespace
}  // namespace verbscope
