// Compares the simulator with the closed-form model: PCIe events per operation of the machine under test, over a grid
// of configurations of SEND and RECV. The two share wire facts only, so agreement is evidence for both.
#include "tests/microbench/model_comparison.hpp"

namespace verbscope {
namespace {

using test::changed_profile;
using test::compare;
using test::Comparison;
using test::expect_agreement;
using test::GridPart;
using test::quickly_steady;
using test::SendBenchmark;

class ModelGridTest : public testing::TestWithParam<GridPart> {};

TEST_P(ModelGridTest, AgreesWithinOnePercent) {
  const TempDir folder;
  const std::string cluster = quickly_steady(folder, GetParam().cluster);
  const std::string& connection = GetParam().connection;
  SendBenchmark benchmark(true);
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
          expect_agreement(compare(benchmark, line), line);
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
  const TempDir folder;
  const std::string cluster = quickly_steady(folder, GetParam().cluster);
  const std::string& connection = GetParam().connection;
  SendBenchmark benchmark(false);
  for (const std::string size : {"--header_only", "-s 1", "-s 60", "-s 64", "-s 100", "-s 512"}) {
    const std::string line = fmt::format("--fabric sim:{} -c {} {} -l 4 -q 2 -D 2ms", cluster, connection, size);
    expect_agreement(compare(benchmark, line), line);
  }
}

INSTANTIATE_TEST_SUITE_P(, ReceiverModelTest,
                         testing::Values(GridPart{"cib", "RC"}, GridPart{"cib", "UC"}, GridPart{"cib", "UD"},
                                         GridPart{"cx3", "RC"}, GridPart{"cx3", "UC"}, GridPart{"cx3", "UD"}),
                         testing::PrintToStringParamName());

TEST(WqeCacheMisses, ExplainTheReadsAboveTheModel) {
  const TempDir folder;
  // Room for eight WQEs of two lines, with batches of sixteen fetched ahead.
  const std::string cluster = changed_profile(folder, "cib", "wqe_cache_bytes", 8 * 128);
  const std::string line = "--fabric sim:" + cluster + " -c UD -s 60 -I 60 -l 16 --clients 1 -D 2ms";
  SendBenchmark benchmark(true);
  const Comparison c = compare(benchmark, line);
  EXPECT_GT(c.extra_per_op("wqe_cache_misses"), 0.1);
  // A WQE that was evicted is read again, both lines of it.
  EXPECT_NEAR(c.extra_per_op("wqe_cache_reread_lines"), 2 * c.extra_per_op("wqe_cache_misses"), 1e-9);
  EXPECT_NEAR(c.measured.dma_read_lines - c.modelled.dma_read_lines, c.extra_per_op("wqe_cache_reread_lines"), 0.02);
  EXPECT_GT(c.measured.dma_read_lines, 1.01 * c.modelled.dma_read_lines);
}

}  // namespace
}  // namespace verbscope
