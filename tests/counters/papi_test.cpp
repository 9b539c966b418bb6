// PAPI: the real library with the counters of this machine, and a fake library with the counters of other CPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "common/error.hpp"
#include "counters/papi_source.hpp"
#include "tests/common/temp_dir.hpp"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr auto kFree = [] { return false; };

// A thread that computes until it is stopped.
class Worker {
 public:
  Worker() {
    while (id_ == 0) std::this_thread::yield();
  }
  int id() const { return id_; }

 private:
  std::atomic<int> id_{0};
  std::jthread thread_{[this](const std::stop_token& stop) {
    id_ = gettid();
    for (volatile int i = 0; !stop.stop_requested();) i = i + 1;
  }};
};

TEST(Papi, RealLibraryCountsOrExplainsWhyNot) {
  PapiSource source(papi_library(), kFree);
  try {
    source.start();
  } catch (const Error& error) {
    // PAPI reports why the cores and the uncore are not available.
    EXPECT_THAT(error.what(), testing::MatchesRegex("PAPI: .+: .+; uncore: .+"));
    RecordProperty("reason", error.what());
    fmt::print("{}\n", error.what());
    return;
  }
  const Worker worker;
  source.attach({worker.id()});
  source.read(Moment::window_begin);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  source.read(Moment::window_end);
  const CounterReport report = source.report(1e6);
  const Json& raw = report.extra.at("raw");
  if (raw.contains("cycles")) {
    EXPECT_GT(raw.at("cycles"), 0);
  }
}

TEST(Papi, RealLibraryErrorsQuotePapi) {
  PapiLibrary& papi = papi_library();
  EXPECT_THAT(message_of<Error>([&papi] { papi.open("no_such_cat", std::nullopt, false); }),
              HasSubstr("no_such_cat: "));
  std::string reason;
  int set = 0;
  try {
    set = papi.open("perf_event", std::nullopt, false);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("perf_event: "));
    return;
  }
  EXPECT_EQ(papi.add(set, "NO_SUCH_CAT", reason), PapiAdd::absent);
  EXPECT_THAT(reason, testing::MatchesRegex("NO_SUCH_CAT: .+"));
  papi.close(set);
}

// A machine with these events. Each reading of an event adds its step to its count.
class FakePapi final : public PapiLibrary {
 public:
  std::map<std::string, long long> steps;
  std::set<std::string> no_room;
  bool uncore = true;
  std::vector<std::string> added;
  std::vector<std::optional<int>> attached;
  int open_sets = 0;
  bool multiplexed = false;  // true if any set with events is

  int open(const std::string& component, std::optional<int> thread, bool multiplex) override {
    if (component == "perf_event_uncore" && !uncore) fail("perf_event_uncore: No uncore PMUs or events found");
    ++open_sets;
    multiplexed_sets_.push_back(multiplex);
    attached.push_back(thread);
    sets_.emplace_back();
    return static_cast<int>(sets_.size()) - 1;
  }
  PapiAdd add(int set, const std::string& event, std::string& reason) override {
    reason = event + ": Event does not exist";
    if (no_room.contains(event)) return PapiAdd::no_room;
    if (!steps.contains(event)) return PapiAdd::absent;
    added.push_back(event);
    multiplexed = multiplexed || multiplexed_sets_[static_cast<std::size_t>(set)];
    sets_[static_cast<std::size_t>(set)].push_back({steps[event], 0});
    return PapiAdd::added;
  }
  void start(int) override {}
  std::vector<long long> read(int set) override {
    std::vector<long long> values;
    for (auto& [step, value] : sets_[static_cast<std::size_t>(set)]) values.push_back(value += step);
    return values;
  }
  void close(int) noexcept override { --open_sets; }
  void forget_thread() noexcept override {}

 private:
  std::vector<bool> multiplexed_sets_;
  std::vector<std::vector<std::pair<long long, long long>>> sets_;
};

// Reports a window in which every event counts one step.
CounterReport window_of(PapiSource& source, double ops_per_s = 0) {
  source.read(Moment::window_begin);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  source.read(Moment::window_end);
  return source.report(ops_per_s);
}

TEST(Papi, SumsThreadsAndDividesByOperations) {
  FakePapi papi;
  papi.uncore = false;
  papi.steps = {{"PAPI_TOT_CYC", 3000}, {"perf::INSTRUCTIONS", 5000}, {"PAPI_L3_TCM", 7}};
  {
    PapiSource source(papi, kFree, {0});
    source.start();
    source.attach({101, 102});
    const CounterReport report = window_of(source, 1e6);
    EXPECT_EQ(report.extra.at("raw").at("cycles"), 6000);
    EXPECT_EQ(report.extra.at("raw").at("instructions"), 10'000);
    EXPECT_EQ(report.extra.at("raw").at("llc_misses"), 14);
    EXPECT_EQ(report.extra.at("raw").at("thread1/cycles"), 3000);
    EXPECT_NEAR(report.extra.at("per_op").at("cycles").get<double>(), 6000 / (1e6 * report.window_s), 1e-6);
    EXPECT_FALSE(report.sees("dma_read_lines"));
    EXPECT_THAT(report.blind, HasSubstr("PCIe (perf_event_uncore: No uncore PMUs or events found)"));
    EXPECT_FALSE(papi.multiplexed);
  }
  EXPECT_EQ(papi.open_sets, 0);
  EXPECT_EQ(papi.attached.at(papi.attached.size() - 2), 101);
  EXPECT_EQ(papi.attached.back(), 102);
}

TEST(Papi, OmitsEventsWithoutACounterOfTheirOwn) {
  FakePapi papi;
  papi.uncore = false;
  papi.steps = {{"PAPI_TOT_CYC", 3000}, {"PAPI_TOT_INS", 5000}};
  papi.no_room = {"PAPI_L3_TCM"};
  PapiSource source(papi, kFree, {0});
  source.start();
  source.attach({101});
  const CounterReport report = window_of(source);
  EXPECT_FALSE(report.extra.at("raw").contains("llc_misses"));
  EXPECT_THAT(report.blind, HasSubstr("llc_misses (PAPI_L3_TCM: Event does not exist)"));
}

TEST(Papi, SumsTheBoxesOfEverySocket) {
  FakePapi papi;
  const std::string event = "UNC_CHA_TOR_INSERTS:IO_";
  for (int box = 0; box < 3; ++box) {
    for (int core : {0, 40}) {
      const std::string prefix = fmt::format("icx_unc_cha{}::{}", box, event);
      papi.steps[fmt::format("{}PCIRDCUR:cpu={}", prefix, core)] = 100 + core;
      papi.steps[fmt::format("{}ITOM:cpu={}", prefix, core)] = 10;
      papi.steps[fmt::format("{}ITOMCACHENEAR:cpu={}", prefix, core)] = box;
    }
  }
  PapiSource source(papi, kFree, {0, 40});
  source.start();
  const CounterReport report = window_of(source);
  EXPECT_EQ(report.events.dma_read_lines, 3u * 100 + 3 * 140);
  EXPECT_EQ(report.events.dma_write_full_lines, 60u);
  EXPECT_EQ(report.events.dma_write_partial_lines, 2u * (0 + 1 + 2));
  EXPECT_FALSE(report.sees("mmio_doorbells"));
  EXPECT_EQ(report.extra.at("uncore_scaling"), 1);
  EXPECT_FALSE(papi.multiplexed);
  EXPECT_THAT(report.blind, HasSubstr("what the threads cost (PAPI_TOT_CYC: Event does not exist)"));
}

TEST(Papi, ScalesSkylakeCountsFromFourByteUnits) {
  FakePapi papi;
  for (int box = 0; box < 6; ++box) {
    for (int part = 0; part < 4; ++part) {
      const std::string prefix = fmt::format("skx_unc_iio{}::UNC_IO_DATA_REQ_OF_CPU:MEM_", box);
      papi.steps[fmt::format("{}READ_PART{}:cpu=0", prefix, part)] = box == 1 && part == 2 ? 1600 : 0;
      papi.steps[fmt::format("{}WRITE_PART{}:cpu=0", prefix, part)] = box == 1 && part == 2 ? 16 : 0;
    }
  }
  PapiSource source(papi, kFree, {0});
  source.start();
  const CounterReport report = window_of(source);
  EXPECT_EQ(report.events.payload_bytes_to_nic, 6400u);
  EXPECT_EQ(report.events.payload_bytes_to_host, 64u);
  EXPECT_EQ(report.extra.at("uncore_scaling"), 4);
  EXPECT_TRUE(papi.multiplexed);
}

TEST(Papi, SkipsTheUncoreIfAPcmToolUsesIt) {
  FakePapi papi;
  papi.steps = {{"PAPI_TOT_CYC", 1}, {"icx_unc_cha0::UNC_CHA_TOR_INSERTS:IO_PCIRDCUR:cpu=0", 1}};
  PapiSource source(papi, [] { return true; }, {0});
  source.start();
  EXPECT_THAT(papi.added, Not(testing::Contains(HasSubstr("unc_"))));
  EXPECT_THAT(window_of(source).blind, HasSubstr("PCM tool that is running"));
}

TEST(Papi, FindsACoreOfEachSocket) {
  const TempDir dir;
  for (const auto& [core, socket] : std::map<int, int>{{0, 0}, {1, 1}, {2, 0}, {10, 1}}) {
    const auto folder = dir / fmt::format("devices/system/cpu/cpu{}/topology", core);
    std::filesystem::create_directories(folder);
    write_file(folder / "physical_package_id", fmt::format("{}\n", socket));
  }
  std::filesystem::create_directories(dir / "devices/system/cpu/cpufreq");
  EXPECT_THAT(one_core_per_socket(dir.path()), ElementsAre(0, 1));
  EXPECT_THAT(one_core_per_socket(), Not(IsEmpty()));
}

}  // namespace
}  // namespace verbscope
