// The sequencer as a program on simulated clusters: that its values are right, and that what the paper reasons out
// (Kalia et al., ATC 2016, section 4.2) comes about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/json.hpp"
#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"
#include "tests/systems/store_results.hpp"

namespace verbscope {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kWrap = std::uint64_t{1} << 32;

Json sequencer_record(const std::string& options) {
  return test::record_of("sequencer " + options);
}

Json sequencer_result(const std::string& options) {
  return sequencer_record("--fabric sim:cib " + options).at("result");
}

constexpr const char* kShortRun = " --warmup 50us -D 100us ";
constexpr const char* kSmall = " --clients 2 --client_threads 3 --warmup 20us -D 60us ";

double sequencer_mops(const Json& result) {
  return result.at("rate_mops").get<double>();
}

// Every value that was handed out arrived, once, in order.
void expect_whole(const Json& values, const std::string& what) {
  EXPECT_GT(values.at("handed_out").get<std::uint64_t>(), 0u) << what;
  EXPECT_EQ(values.at("received"), values.at("handed_out")) << what;
  EXPECT_EQ(values.at("lost"), 0) << what;
  EXPECT_EQ(values.at("repeated"), 0) << what;
  EXPECT_EQ(values.at("disordered"), 0) << what;
  EXPECT_EQ(values.at("checked"), "each value") << what;
}

TEST(Sequencer, HandsOutEveryValueOnceInEachDesign) {
  for (const char* options :
       {"--design herd", "--design herd --batching", "--design herd --batching -q 3 --threads 3",
        "--design herd --threads 14 --outstanding 1", "--design herd --batching --outstanding 32 -t 32 -Q 8",
        "--design herd --batching --wr_api", "--design spec", "--design spec --batching --threads 4",
        "--design spec --batching -q 2 --outstanding 32 -r 128", "--design spec --wr_api", "--design atomic",
        "--design atomic --outstanding 1 --threads 3", "--design herd -i 1", "--design spec -i 2",
        "--design herd -t 1 --outstanding 1", "--design herd -t 3 --outstanding 3"}) {
    const Json result = sequencer_result(options + std::string(kSmall));
    expect_whole(result.at("values"), options);
    EXPECT_EQ(result.at("values").at("retries"), 0) << options;
    EXPECT_GT(result.at("lat_samples").get<std::uint64_t>(), 0u) << options;
    EXPECT_FALSE(result.at("bottleneck").get<std::string>().empty()) << options;
  }
}

TEST(Sequencer, RunsOnTheOtherClustersToo) {
  for (const char* cluster : {"cx3", "cx"}) {
    for (const char* design : {"herd --batching", "spec --batching", "atomic"}) {
      const std::string options = std::string("--fabric sim:") + cluster + " --design " + design + kSmall;
      expect_whole(sequencer_record(options).at("result").at("values"), options);
    }
  }
}

TEST(Sequencer, CountsPastTheWrapOfTheLow32Bits) {
  for (const std::uint64_t start : {kWrap - 100, 5 * kWrap - 100}) {
    for (const char* design : {"herd --batching", "spec", "spec --batching", "atomic"}) {
      const Json result =
          sequencer_result(std::string("--design ") + design + kSmall + "--start_value " + std::to_string(start));
      expect_whole(result.at("values"), design);
      EXPECT_EQ(result.at("values").at("first"), start);
      EXPECT_GT(start + result.at("values").at("handed_out").get<std::uint64_t>(), (start / kWrap + 1) * kWrap)
          << design;
    }
  }
}

// The 35 clients on a port have 560 requests open at each of its two QPs. Where these have 512 RECVs the adapter drops
// some requests, the worker none.
TEST(Spec, AnswersEveryRequestUnderOverload) {
  const std::string load = "--design spec --threads 2 --outstanding 32";
  EXPECT_EQ(test::count_of(sequencer_result(load).at("values"), "retries"), 0u);
  const Json values = sequencer_result(load + " --rx_depth 512").at("values");
  EXPECT_GT(test::count_of(values, "retries"), 0u);
  EXPECT_EQ(values.at("lost"), 0);
  EXPECT_EQ(values.at("received"), values.at("handed_out"));
}

TEST(Spec, EarlyRetriesAreHarmless) {
  const Json values =
      sequencer_result("--design spec --batching --threads 10 --outstanding 16 --retry_after 20us -D 200us")
          .at("values");
  EXPECT_GT(values.at("retries").get<std::uint64_t>(), 0u);
  EXPECT_EQ(values.at("disordered"), 0);
}

TEST(Spec, CorrectsAGuessOnlyWhenItIsWrong) {
  // Six clients, which have four requests outstanding each, learn the high bits with their first answer.
  const auto corrections = [](std::uint64_t start) {
    const Json result =
        sequencer_result(std::string("--design spec --batching") + kSmall + "--start_value " + std::to_string(start));
    return result.at("workers").at("corrections").get<std::uint64_t>();
  };
  EXPECT_EQ(corrections(0), 0u);
  EXPECT_EQ(corrections(7 * kWrap), 24u);
  const std::uint64_t at_the_wrap = corrections(kWrap - 100);
  EXPECT_GE(at_the_wrap, 6u);
  EXPECT_LE(at_the_wrap, 2 * 24u);
}

TEST(Sequencer, MeasuresExactlyTheRequestedOperations) {
  for (const char* design : {"herd --batching", "spec --batching", "atomic"}) {
    const Json result =
        sequencer_result(std::string("--clients 2 --client_threads 2 -n 300 --warmup 5us --design ") + design);
    EXPECT_EQ(result.at("ops"), 4 * 300) << design;
  }
}

TEST(Sequencer, TheSameSeedGivesTheSameRecord) {
  const std::string options = std::string("--design herd --batching --threads 2") + kSmall;
  EXPECT_EQ(sequencer_result(options), sequencer_result(options));
}

// One packet of a hundred is dropped.
std::string lossy_cluster(const TempDir& folder) {
  return test::changed_cluster(folder, {{"/fabric/loss_probability", 0.01}});
}

TEST(Sequencer, WithLossValuesStayUniqueAndTheGapsAreCounted) {
  const TempDir folder;
  const std::string cluster = lossy_cluster(folder);
  for (const char* design : {"herd", "herd --batching --threads 2 -q 2", "spec", "spec --batching --threads 2"}) {
    const Json record = sequencer_record("--fabric " + cluster + " --design " + design +
                                         " --clients 2 --client_threads 5 --warmup 50us -D 1ms --retry_after 30us");
    const Json& values = record.at("result").at("values");
    EXPECT_EQ(record.at("status"), "ok") << design;
    EXPECT_EQ(values.at("repeated"), 0) << design;
    EXPECT_EQ(values.at("disordered"), 0) << design;
    const auto handed_out = values.at("handed_out").get<std::uint64_t>();
    const auto lost = values.at("lost").get<std::uint64_t>();
    EXPECT_EQ(values.at("received").get<std::uint64_t>() + lost, handed_out) << design;
    EXPECT_GT(handed_out, 2000u) << design;
    // One answer of a hundred: at 2000 values and more, 1 % give or take five standard deviations.
    EXPECT_NEAR(static_cast<double>(lost), 0.01 * static_cast<double>(handed_out),
                5 * std::sqrt(0.01 * static_cast<double>(handed_out)))
        << design;
    EXPECT_GE(values.at("retries").get<std::uint64_t>(), lost) << design;
    // Clients are done with all that they asked.
    EXPECT_EQ(values.at("received").get<std::uint64_t>() - values.at("surplus").get<std::uint64_t>(),
              values.at("asked").get<std::uint64_t>())
        << design;
  }
}

// A QP whose atomic is lost stands still until its timer ends, so that the rate of a second is a matter of chance.
TEST(Sequencer, ALossyNetworkLosesNothingOnAReliableTransport) {
  const TempDir folder;
  const Json record = sequencer_record("--fabric " + lossy_cluster(folder) + " --design atomic -D 1ms" +
                                       " --clients 2 --client_threads 2 --warmup 50us --longest 8s");
  expect_whole(record.at("result").at("values"), "atomic");
}

TEST(Herd, BatchingIsFasterAndMultiQueueFasterStill) {
  const std::string one = std::string("--design herd --threads 1 --outstanding 16") + kShortRun;
  const double plain = sequencer_mops(sequencer_result(one)),
               batched = sequencer_mops(sequencer_result(one + "--batching")),
               multi_queue = sequencer_mops(sequencer_result(one + "--batching -q 3"));
  EXPECT_GT(batched, 1.8 * plain);
  EXPECT_GT(multi_queue, 1.3 * batched);
}

// 70 clients on one port: the send queue is the limit. A closed loop serves all alike, as it does with a queue so deep
// that it never is.
TEST(Herd, ServesAllClientsAlikeWhenTheSendQueueIsTheLimit) {
  const Json result = sequencer_result("--design herd -i 1");
  EXPECT_GT(result.at("workers").at("blocked").get<std::uint64_t>(), 0u);
  const double share = sequencer_mops(result) / 70;
  for (const Json& client : result.at("clients")) {
    for (const Json& thread : client.at("result").at("threads"))
      EXPECT_NEAR(sequencer_mops(thread), share, 0.05 * share);
  }
}

// With one round trip of 46 us for all 70 clients, an answer that is asked for again after 200 us comes within 300 us.
TEST(Herd, AnswersARetrySoonWhenTheSendQueueIsTheLimit) {
  const TempDir folder;
  const Json result = sequencer_record("--fabric " + lossy_cluster(folder) +
                                       " --design herd -t 2 --outstanding 2 -D 3ms --retry_after 200us")
                          .at("result");
  EXPECT_GT(result.at("values").at("lost").get<std::uint64_t>(), 50u);
  EXPECT_LT(result.at("lat_p99_ns").get<double>(), 300e3);
}

TEST(Herd, WithMoreWorkersThanNeededBatchesShrinkAndTheRateFalls) {
  const std::string options = std::string("--design herd --batching -q 3 --outstanding 16") + kShortRun;
  const Json enough = sequencer_result(options + "--threads 6"), more = sequencer_result(options + "--threads 14");
  EXPECT_LT(more.at("answers_per_post").at("mean").get<double>(),
            0.7 * enough.at("answers_per_post").at("mean").get<double>());
  EXPECT_LT(sequencer_mops(more), 0.98 * sequencer_mops(enough));
}

TEST(Spec, BatchingAddsAMicrosecondAtMostAndOnlyWhenThereIsABatch) {
  const auto latency = [](const std::string& options) {
    return sequencer_result("--design spec --threads 10 --warmup 50us -D 100us " + options)
        .at("lat_mean_ns")
        .get<double>();
  };
  // One client: there is never more than one request to answer.
  const std::string alone = "--clients 1 --client_threads 1 --outstanding 1 ";
  EXPECT_DOUBLE_EQ(latency(alone + "--batching"), latency(alone));
  for (const char* load : {"--outstanding 1 ", "--outstanding 2 ", "--outstanding 4 "}) {
    EXPECT_LT(latency(load + std::string("--batching")), latency(load) + 1000) << load;
  }
}

TEST(Atomic, OneOperationAPcieRoundTripWhateverTheClientsDo) {
  const auto atomics = [](const char* load) {
    return sequencer_mops(sequencer_result(std::string("--design atomic --warmup 300us -D 1ms ") + load));
  };
  const double many = atomics("--outstanding 16");
  EXPECT_NEAR(atomics("--clients 1 --client_threads 4 --outstanding 8"), many, 0.03 * many);
  EXPECT_LT(many, 3);
}

TEST(Atomic, ReportsWhetherRequestsWaitForTheCounter) {
  const auto bottleneck = [](const char* load) {
    return sequencer_result(std::string("--design atomic --warmup 300us -D 300us --clients 1 --client_threads 1 ") +
                            load)
        .at("bottleneck");
  };
  EXPECT_EQ(bottleneck("--outstanding 8"), "PCIe round trip of an atomic");
  // One after the other: the rate is that of the network's round trip, a quarter of what the counter can do.
  EXPECT_EQ(bottleneck("--outstanding 1"), "too few requests outstanding");
}

TEST(Sequencer, AcceptsItsOwnTransport) {
  for (const char* options : {"--design herd -c UC", "--design spec -c UD", "--design atomic -c RC"}) {
    expect_whole(sequencer_result(options + std::string(kSmall)).at("values"), options);
  }
}

TEST(Sequencer, RejectsInvalidOptions) {
  for (const auto& [options, reason] : std::vector<std::pair<std::string, std::string>>{
           {"--fabric null", "--fabric null"},
           {"--fabric sim:cib -s 4", "--size 4"},
           {"--fabric sim:cib --design atomic --batching", "--batching"},
           {"--fabric sim:cib -l 4", "--post_list 4"},
           {"--fabric sim:cib --outstanding 200", "--outstanding 200"},
           {"--fabric sim:cib --retry_after 0s", "--retry_after"},
           {"--fabric sim:cib --design herd -c RC", "--connection RC"},
           {"--fabric sim:cib --design spec -c UC", "--connection UC"},
           {"--fabric sim:cib --design atomic -c UD", "--connection UD"},
           {"--fabric sim:cib --design atomic --retry_after 1us", "--retry_after"},
           {"--fabric sim:cib --design atomic --max_batch 16", "--max_batch"}}) {
    const test::Ran ran = test::run_program("sequencer " + options);
    EXPECT_EQ(ran.exit_code, 2) << options;
    EXPECT_EQ(ran.error_lines(), 1) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(reason));
  }
}

}  // namespace
}  // namespace verbscope
