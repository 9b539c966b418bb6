// Simulator against closed-form model: PCIe events per operation of the machine under test, over a grid of
// configurations. The two share wire facts only; where they agree, each is evidence for the other.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "common/paths.hpp"
#include "common/pcie_events.hpp"
#include "microbench/sim_run.hpp"
#include "pcie_model/render.hpp"
#include "tests/microbench/temp_folder.hpp"
#include "tests/microbench/test_benchmarks.hpp"

namespace verbscope {
namespace {

using test::OptionSet;
using test::SendBenchmark;

constexpr double kTolerance = 0.01;
// Of an event that the model excludes, so many per operation may be seen at the window's edges.
constexpr double kStray = 1e-4;

struct Comparison {
  PciePerOp measured;
  PciePerOp modelled;
  Outcome outcome;

  double extra_per_op(const std::string& name) const {
    return outcome.counters.at(0).extra.at(name).get<double>() / outcome.result.at("window_ops").get<double>();
  }
};

Comparison compare(bool server_sends, const std::string& line) {
  const SendBenchmark benchmark(server_sends);
  const OptionSet set(line);
  Comparison c;
  c.outcome = run_on_simulator(benchmark, set.options);
  EXPECT_EQ(c.outcome.failure, "") << line;
  c.modelled = prediction_from_json(c.outcome.prediction, "prediction").pcie;
  const double ops = c.outcome.result.at("window_ops").get<double>();
  std::vector<double> counted;
  PcieCounts::each(c.outcome.counters.at(0).events,
                   [&](const char*, std::uint64_t n) { counted.push_back(static_cast<double>(n) / ops); });
  auto next = counted.begin();
  PciePerOp::each(c.measured, [&](const char*, double& value) { value = *next++; });
  return c;
}

void expect_agreement(const Comparison& c, const std::string& line) {
  std::vector<double> measured;
  PciePerOp::each(c.measured, [&](const char*, double value) { measured.push_back(value); });
  auto next = measured.begin();
  PciePerOp::each(c.modelled, [&](const char* name, double expected) {
    const double value = *next++;
    const double allowed = expected == 0 ? kStray : kTolerance * expected;
    EXPECT_NEAR(value, expected, allowed) << name << " per operation, " << line;
  });
}

// The path of a copy of a profile with one parameter of its NIC changed.
std::string changed_profile(const test::TempFolder& folder, const std::string& name, const std::string& key,
                            const Json& value) {
  Json profile = read_json_file(find_config("clusters", name));
  profile.at("nic").at(key).at("value") = value;
  const std::filesystem::path path = folder / (name + ".json");
  std::ofstream(path) << profile;
  return path.string();
}

// A small input buffer: where the receiver is the slower side the sender is held back, and the steady state begins,
// soon.
std::string quickly_steady(const test::TempFolder& folder, const std::string& name) {
  return changed_profile(folder, name, "input_buffer_bytes", 8192);
}

struct GridPart {
  std::string cluster;
  std::string connection;
};

std::ostream& operator<<(std::ostream& out, const GridPart& part) {
  return out << part.cluster << '_' << part.connection;
}

class ModelGridTest : public testing::TestWithParam<GridPart> {};

TEST_P(ModelGridTest, AgreesWithinOnePercent) {
  const test::TempFolder folder;
  const std::string cluster = quickly_steady(folder, GetParam().cluster);
  const std::string& connection = GetParam().connection;
  int configurations = 0;
  for (const int payload : {0, 1, 28, 60, 92, 128, 300, 512}) {
    for (const bool inlined : {false, true}) {
      if (payload == 0 && inlined) continue;
      for (const int post_list : {1, 2, 3, 8, 16, 32}) {
        for (const int signal_every : {1, 64}) {
          std::string line = fmt::format("--fabric sim:{} -c {} -l {} -Q {} --clients 1 --client_threads 1 -D 4ms",
                                         cluster, connection, post_list, signal_every);
          line += payload == 0 ? " --header_only" : fmt::format(" -s {}", payload);
          if (inlined) line += fmt::format(" -I {}", payload);
          expect_agreement(compare(true, line), line);
          ++configurations;
        }
      }
    }
  }
  EXPECT_EQ(configurations, 15 * 6 * 2);
}

// 180 configurations each: 1080 in all.
INSTANTIATE_TEST_SUITE_P(, ModelGridTest,
                         testing::Values(GridPart{"cib", "RC"}, GridPart{"cib", "UC"}, GridPart{"cib", "UD"},
                                         GridPart{"cx3", "RC"}, GridPart{"cx3", "UC"}, GridPart{"cx3", "UD"}),
                         testing::PrintToStringParamName());

class ReceiverModelTest : public testing::TestWithParam<GridPart> {};

TEST_P(ReceiverModelTest, AgreesWithinOnePercent) {
  const test::TempFolder folder;
  const std::string cluster = quickly_steady(folder, GetParam().cluster);
  const std::string& connection = GetParam().connection;
  for (const std::string size : {"--header_only", "-s 1", "-s 60", "-s 64", "-s 100", "-s 512"}) {
    const std::string line = fmt::format("--fabric sim:{} -c {} {} -l 4 -q 2 -D 2ms", cluster, connection, size);
    expect_agreement(compare(false, line), line);
  }
}

INSTANTIATE_TEST_SUITE_P(, ReceiverModelTest,
                         testing::Values(GridPart{"cib", "RC"}, GridPart{"cib", "UC"}, GridPart{"cib", "UD"},
                                         GridPart{"cx3", "RC"}, GridPart{"cx3", "UC"}, GridPart{"cx3", "UD"}),
                         testing::PrintToStringParamName());

TEST(WqeCacheMisses, AreExactlyWhatTheModelDoesNotForesee) {
  const test::TempFolder folder;
  // Room for eight WQEs of two lines, with batches of sixteen fetched ahead.
  const std::string cluster = changed_profile(folder, "cib", "wqe_cache_bytes", 8 * 128);
  const std::string line = "--fabric sim:" + cluster + " -c UD -s 60 -I 60 -l 16 --clients 1 -D 2ms";
  const Comparison c = compare(true, line);
  EXPECT_GT(c.extra_per_op("wqe_cache_misses"), 0.1);
  // A WQE that was evicted is read again, both lines of it.
  EXPECT_NEAR(c.extra_per_op("wqe_cache_reread_lines"), 2 * c.extra_per_op("wqe_cache_misses"), 1e-9);
  EXPECT_NEAR(c.measured.dma_read_lines - c.modelled.dma_read_lines, c.extra_per_op("wqe_cache_reread_lines"), 0.02);
  EXPECT_GT(c.measured.dma_read_lines, 1.01 * c.modelled.dma_read_lines);
}

}  // namespace
}  // namespace verbscope
