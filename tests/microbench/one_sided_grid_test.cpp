// Simulator against closed-form model for WRITE and READ, at the side that posts and at the side that is worked on.
#include "tests/microbench/model_comparison.hpp"

namespace verbscope {
namespace {

using test::changed_profile;
using test::compare;
using test::Comparison;
using test::expect_agreement;
using test::GridPart;
using test::OneSidedBenchmark;
using test::quickly_steady;

// The interval has about 15,000 operations. The 128 outstanding operations of a send queue, by which its ends may
// differ, are less than 1 % of them.
void expect_agreement_on(const std::string& line, int payload) {
  OneSidedBenchmark benchmark;
  const std::string whole = fmt::format("{} -s {} -D {}ms", line, payload, payload > 2000 ? 10 : payload > 128 ? 4 : 2);
  expect_agreement(compare(benchmark, whole), whole);
}

class OneSidedGridTest : public testing::TestWithParam<GridPart> {};

TEST_P(OneSidedGridTest, WritesAgreeWithinOnePercent) {
  const TempDir folder;
  const std::string cluster = quickly_steady(folder, GetParam().cluster);
  for (const int payload : {1, 28, 60, 92, 128, 300, 512}) {
    for (const bool inlined : {false, true}) {
      for (const int post_list : {1, 2, 3, 16}) {
        for (const int signal_every : {1, 64}) {
          std::string line = fmt::format("--fabric sim:{} --verb write -c {} -l {} -Q {} --clients 1", cluster,
                                         GetParam().connection, post_list, signal_every);
          if (inlined) line += fmt::format(" -I {}", payload);
          expect_agreement_on(line, payload);
        }
      }
    }
  }
}

TEST_P(OneSidedGridTest, TargetsOfWritesAgreeWithinOnePercent) {
  const TempDir folder;
  const std::string cluster = quickly_steady(folder, GetParam().cluster);
  for (const int payload : {1, 28, 64, 100, 128, 512, 5000}) {
    expect_agreement_on(fmt::format("--fabric sim:{} --verb write --direction in -c {} -q 4 --clients 2", cluster,
                                    GetParam().connection),
                        payload);
  }
}

INSTANTIATE_TEST_SUITE_P(, OneSidedGridTest,
                         testing::Values(GridPart{"cib", "RC"}, GridPart{"cib", "UC"}, GridPart{"cx3", "RC"},
                                         GridPart{"cx3", "UC"}),
                         testing::PrintToStringParamName());

class ReadGridTest : public testing::TestWithParam<std::string> {};

TEST_P(ReadGridTest, AgreesWithinOnePercentOnBothSides) {
  const TempDir folder;
  const std::string cluster = quickly_steady(folder, GetParam());
  for (const int payload : {1, 32, 64, 100, 128, 512, 5000}) {
    for (const int post_list : {1, 3, 16}) {
      for (const int signal_every : {1, 64}) {
        const std::string line =
            fmt::format("--fabric sim:{} --verb read -l {} -Q {} --clients 1", cluster, post_list, signal_every);
        expect_agreement_on(line, payload);
        expect_agreement_on(line + " --direction in", payload);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ReadGridTest, testing::Values("cib", "cx3"), [](const auto& which) { return which.param; });

TEST(OneSidedGrid, InlineReceivePutsReadsIntoTheCqe) {
  expect_agreement_on("--fabric sim:cib --verb read --inline_recv 32 -Q 1 --clients 1", 32);
  expect_agreement_on("--fabric sim:cib --verb read --inline_recv 32 -Q 1 --clients 1", 33);
}

TEST(OneSidedGrid, ASmallerPathMtuTakesMorePackets) {
  const TempDir folder;
  OneSidedBenchmark benchmark;
  const std::string line = "--fabric sim:" + quickly_steady(folder, "cib") + " --verb read -m 256 -s 4096 -D 5ms " +
                           "--direction in -q 4 --clients 2";
  const Comparison c = compare(benchmark, line);
  expect_agreement(c, line);
  EXPECT_NEAR(c.modelled.tlps_to_host, 4096 / 256, 0.01);  // a read request for each packet of the response
}

TEST(TranslationMisses, ExplainTheReadsAboveTheModel) {
  const TempDir folder;
  // Room for the translations of 1,024 pages of 4 KB, of 24,415 at random.
  const std::string cluster = changed_profile(folder, "cib", "translation_cache_bytes", 1024 * 8);
  OneSidedBenchmark benchmark;
  const Comparison c = compare(benchmark, "--fabric sim:" + cluster +
                                              " --verb read --direction in -q 4 --clients 2 -D 1ms --addresses random "
                                              "--region_size 100000000");
  EXPECT_GT(c.extra_per_op("translation_misses"), 0.5);
  EXPECT_NEAR(c.measured.dma_read_lines - c.modelled.dma_read_lines, c.extra_per_op("translation_misses"),
              0.01 * c.measured.dma_read_lines);
}

TEST(WqeCacheMisses, OfReadsExplainTheReadsAboveTheModel) {
  const TempDir folder;
  // Room for eight WQEs of a line, of sixteen READs that are outstanding on each of four QPs.
  const std::string cluster = changed_profile(folder, "cib", "sent_wqe_cache_bytes", 8 * 64);
  OneSidedBenchmark benchmark;
  const Comparison c = compare(benchmark, "--fabric sim:" + cluster + " --verb read -q 4 -Q 1 --clients 1 -D 1ms");
  EXPECT_GT(c.extra_per_op("wqe_cache_misses"), 0.1);
  EXPECT_NEAR(c.measured.dma_read_lines - c.modelled.dma_read_lines, c.extra_per_op("wqe_cache_reread_lines"), 0.02);
}

}  // namespace
}  // namespace verbscope
