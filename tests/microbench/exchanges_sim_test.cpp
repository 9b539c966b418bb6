// verb_latency, atomic_rate, echo_rate and write_visibility as programs on simulated clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json.hpp"
#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using testing::Gt;
using testing::HasSubstr;

Json result_of(const std::string& command) {
  const test::Ran ran = test::run_program(command + " --out_json_file -");
  EXPECT_EQ(ran.exit_code, 0) << command << ": " << ran.err;
  return ran.exit_code == 0 ? parse_json_text(ran.out, command).at("result") : Json::object();
}

std::string refusal_of(const std::string& command) {
  const test::Ran ran = test::run_program(command);
  EXPECT_EQ(ran.exit_code, 2) << command << ": " << ran.out;
  EXPECT_EQ(ran.error_lines(), 1) << ran.err;
  return ran.err;
}

// Median in nanoseconds.
double latency_of(const std::string& cluster, const std::string& options) {
  return result_of("verb_latency --fabric sim:" + cluster + " -D 2ms --warmup 100us " + options).at("lat_p50_ns");
}

class LatencyOn : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, LatencyOn, testing::Values("cib", "cx3"));

TEST_P(LatencyOn, AnUnloadedReadTakesAboutTwoMicroseconds) {
  EXPECT_NEAR(latency_of(GetParam(), "--verb read -s 32"), 2000, 500);
}

TEST_P(LatencyOn, AnInlinedWriteIsFasterThanAPlainOne) {
  EXPECT_LT(latency_of(GetParam(), "--verb write_inline -s 8") + 100, latency_of(GetParam(), "--verb write -s 8"));
}

TEST_P(LatencyOn, AnEchoByWritesTakesAboutAsLongAsARead) {
  const double read = latency_of(GetParam(), "--verb read -s 8");
  EXPECT_NEAR(latency_of(GetParam(), "--verb echo -s 8"), read, 0.2 * read);
}

TEST_P(LatencyOn, AnEchoIsTwoInlinedWrites) {
  // Half and full round trip of the same exchange; only signalling differs.
  const double echo = latency_of(GetParam(), "--verb echo -s 8");
  EXPECT_NEAR(2 * latency_of(GetParam(), "--verb write_inline -s 8"), echo, 0.03 * echo);
}

TEST_P(LatencyOn, AnAtomicTakesAReadAndItsReadModifyWrite) {
  const double read = latency_of(GetParam(), "--verb read -s 8");
  for (const char* verb : {"fetch_add", "compare_swap"}) {
    const double atomic = latency_of(GetParam(), std::string("--verb ") + verb);
    EXPECT_GE(atomic, read);
    EXPECT_LT(atomic, read + 600);  // both read the word over PCIe; an atomic then writes it back
  }
}

TEST(Latency, ADoorbellAddsOneDmaRead) {
  // On cib 220 inlined bytes are the largest WQE that goes by BlueFlame. A plain WRITE of 8 bytes has a DMA read, of
  // its payload, that an inlined one has not: the doorbell's read of the WQE must cost the same.
  const double dma_read = latency_of("cib", "--verb write -s 8") - latency_of("cib", "--verb write_inline -s 8");
  const double step = latency_of("cib", "--verb write_inline -s 221") - latency_of("cib", "--verb write_inline -s 220");
  EXPECT_NEAR(step, dma_read, 0.25 * dma_read);
}

TEST(Latency, EveryExchangeArrivesIntact) {
  for (const char* options :
       {"--verb read -s 4097", "--verb write -s 1", "--verb write -s 5000", "--verb write -c UC -s 9",
        "--verb send -s 100", "--verb send -c UC -s 64", "--verb send -c UD -s 64 -I 64", "--verb send --header_only",
        "--verb send --header_only -c UD", "--verb send -s 0", "--verb echo -s 60", "--verb fetch_add",
        "--verb write -s 4 --threads 3", "--verb send -e", "--verb read --wr_api"}) {
    const Json result =
        result_of(std::string("verb_latency --fabric sim:cib -D 200us --warmup 20us --validate ") + options);
    EXPECT_THAT(result.at("latency").back().value("lat_samples", 0), Gt(10)) << options;
    EXPECT_THAT(result.at("validation").value("checked", 0), Gt(10)) << options;
  }
}

TEST(Latency, SaysWhichTripItReports) {
  EXPECT_EQ(result_of("verb_latency --fabric sim:cib --verb write -n 64").at("trip"), "half");
  EXPECT_EQ(result_of("verb_latency --fabric sim:cib --verb read -n 64").at("trip"), "full");
  const test::Ran ran = test::run_program("verb_latency --fabric sim:cib --verb send -n 64");
  EXPECT_THAT(ran.out, HasSubstr("half round trip in us"));
  EXPECT_THAT(ran.out, HasSubstr("simulated"));
}

TEST(Latency, MeasuresExactlyTheItersOfEachThread) {
  EXPECT_EQ(result_of("verb_latency --fabric sim:cib --verb read -n 640").at("lat_samples"), 640);
  EXPECT_EQ(result_of("verb_latency --fabric sim:cib --verb write -n 64 --threads 2").at("lat_samples"), 128);
  const Json result = result_of("verb_latency --fabric sim:cib --all -s 1024 -n 10 --verb send --validate");
  for (const Json& size : result.at("latency")) {
    EXPECT_EQ(size.at("lat_samples"), 10) << size.at("size");
  }
}

TEST(Latency, EachThreadHasOneThatAnswersItOnEveryTransport) {
  // A thread that nobody answered would have no trip, and the run would fail.
  for (const char* options : {"--threads 5", "--threads 2 --clients 1", "--threads 2 -c UD --verb send",
                              "--threads 3 --clients 2 -c UD --verb send", "--threads 5 --clients 2 --client_threads 3",
                              "--threads 5 --verb read --client_threads 1"}) {
    const Json result = result_of(std::string("verb_latency --fabric sim:cib -D 100us --warmup 50us ") + options);
    EXPECT_THAT(result.value("lat_samples", 0), Gt(10)) << options;
  }
  EXPECT_THAT(refusal_of("verb_latency --fabric sim:cib --threads 5 --clients 2 --client_threads 2"),
              HasSubstr("--client_threads 2: too few"));
}

TEST(Latency, SweepsPayloadsInOneRun) {
  const Json result = result_of("verb_latency --fabric sim:cib --verb write -a -s 3000");
  std::vector<int> sizes;
  double before = 0;
  for (const Json& point : result.at("latency")) {
    sizes.push_back(point.at("size"));
    EXPECT_GT(point.at("lat_samples").get<int>(), 1000);
    EXPECT_GE(point.at("lat_p50_ns").get<double>(), before * 0.99);
    before = point.at("lat_p50_ns");
    std::uint64_t samples = 0;
    for (const Json& bucket : point.at("lat_histogram_ns")) samples += bucket.at(1).get<std::uint64_t>();
    EXPECT_EQ(samples, point.at("lat_samples").get<std::uint64_t>());
  }
  EXPECT_THAT(sizes, testing::ElementsAre(2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3000));
}

TEST(Latency, ASizeTakesAsLongInASweepAsAlone) {
  const Json sweep = result_of("verb_latency --fabric sim:cib --verb write -a -s 64");
  EXPECT_NEAR(sweep.at("latency").back().at("lat_p50_ns").get<double>(), latency_of("cib", "--verb write -s 64"), 10);
}

TEST(Latency, RefusesWhatMakesNoSense) {
  const std::string program = "verb_latency --fabric sim:cib ";
  EXPECT_THAT(refusal_of(program + "-q 2"), HasSubstr("--qp 2"));
  EXPECT_THAT(refusal_of(program + "--verb write -s 0"), HasSubstr("--size 0"));
  EXPECT_THAT(refusal_of(program + "--verb fetch_add -s 16"), HasSubstr("an atomic has 8 bytes"));
  EXPECT_THAT(refusal_of(program + "--verb read -c UC"), HasSubstr("--connection UC"));
  EXPECT_THAT(refusal_of(program + "--verb echo -e"), HasSubstr("--events"));
  EXPECT_THAT(refusal_of("verb_latency --fabric null --verb send"), HasSubstr("nobody answers"));
  EXPECT_THAT(refusal_of("verb_latency --fabric null --verb fetch_add"), HasSubstr("no memory to count in"));
  for (const char* verb : {"read", "fetch_add", "compare_swap"}) {  // it would time the posts of all but one in eight
    EXPECT_THAT(refusal_of(program + "-Q 8 -n 160 --verb " + verb), HasSubstr("--cq_mod 8"));
  }
}

TEST(AtomicRate, FetchAndAddsSumUpToTheOperationsDone) {
  for (const char* options :
       {"-Z 1", "-Z 100 --threads 2 -q 3 --clients 3", "-Z 64 --addresses strided --stride 4096"}) {
    const Json result = result_of(std::string("atomic_rate --fabric sim:cib -D 100us --warmup 50us ") + options);
    EXPECT_EQ(result.at("lost"), 0);
    EXPECT_EQ(result.at("messages_expected"), result.at("messages_received"));
    EXPECT_GT(result.at("messages_received").get<int>(), 200);
  }
}

TEST(AtomicRate, CountersOfOneSlotRunNoFasterThanOneCounter) {
  const auto rate = [](const std::string& options) {
    return result_of("atomic_rate --fabric sim:cib -q 4 --threads 4 --clients 4 -D 200us --warmup 100us " + options)
        .at("rate_mops")
        .get<double>();
  };
  const double one = rate("-Z 1");
  EXPECT_NEAR(rate("-Z 64 --stride 4096"), one, 0.05 * one);  // the same twelve low bits
  EXPECT_GT(rate("-Z 64 --stride 8"), 5 * one);
}

TEST(AtomicRate, SwapsThatSucceedSumUpInTheCounters) {
  const Json result = result_of(
      "atomic_rate --fabric sim:cib --verb compare_swap -Z 10 --threads 2 --clients 2 -D 100us --warmup 20us");
  EXPECT_EQ(result.at("swaps_succeeded"), result.at("messages_received"));
  EXPECT_GT(result.at("swaps_tried").get<int>(), result.at("swaps_succeeded").get<int>());
}

Json slots_of(const std::string& fabric) {
  return result_of("atomic_rate --probe_slots --fabric " + fabric).at("lock_slots");
}

TEST(ProbeSlots, FindsThoseOfTheClusters) {
  const Json cib = slots_of("sim:cib");
  EXPECT_EQ(cib.at("slots"), 4096);
  EXPECT_EQ(cib.at("slots_told_apart"), 512);
  EXPECT_EQ(cib.at("address_bits"), Json({3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_GT(cib.at("confidence").get<double>(), 0.95);
  const Json cx3 = slots_of("sim:cx3");
  EXPECT_EQ(cx3.at("slots"), 1);
  EXPECT_GT(cx3.at("confidence").get<double>(), 0.95);
}

TEST(ProbeSlots, FindsThoseOfAChangedProfile) {
  const TempDir folder;
  const Json found =
      slots_of(test::changed_cluster(folder, {{"/nic/atomic_slots", 256}, {"/nic/atomic_slot_lowest_bit", 6}}));
  EXPECT_EQ(found.at("slots"), 256);
  EXPECT_EQ(found.at("address_bits"), Json({6, 7, 8, 9, 10, 11, 12, 13}));
  EXPECT_EQ(found.at("checked_pairs_agreed"), found.at("checked_pairs"));
}

TEST(ProbeSlots, RefusesWhatItWouldDrop) {
  for (const char* option :
       {"--events", "--threads 2", "--qp 3", "--clients 2", "--client_threads 2", "--warmup 1ms", "--validate"}) {
    EXPECT_THAT(refusal_of(std::string("atomic_rate --probe_slots --fabric sim:cib ") + option),
                HasSubstr(std::string(option).substr(0, std::string(option).find(' '))));
  }
}

class EchoOf : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(, EchoOf, testing::Values("write_write", "write_send", "send_send"));

TEST_P(EchoOf, AnswersEveryRequestWithItsBytes) {
  for (const char* options : {"", "-s 8 --window 1", "-s 200 -q 3 --threads 2 --clients 2 --window 7",
                              "--optimise none", "--optimise unreliable", "--optimise unsignaled",
                              "--optimise inline --clients 2 -q 2 --client_threads 2", "--wr_api -t 4 --window 9"}) {
    const Json result =
        result_of("echo_rate --fabric sim:cib -D 100us --warmup 30us --validate --mode " + GetParam() + " " + options);
    EXPECT_EQ(result.value("lost", -1), 0) << options;
    EXPECT_GT(result.value("rate_mops", 0.0), 0.1) << options;
    EXPECT_EQ(result.at("validation").value("wrong", -1), 0) << options;
  }
}

TEST_P(EchoOf, LosesMessagesAndGoesOnWhereTheyMayBeLost) {
  // A lost message costs one place of the window for about one round trip: next to nothing.
  const TempDir folder;
  const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.001}});
  for (const std::string connection : {"RC", "UC", "UD"}) {
    if (connection == "UD" && GetParam() != "send_send") continue;   // WRITEs need a connection
    if (connection == "RC" && GetParam() != "write_send") continue;  // loses nothing
    const std::string options = " -D 10ms --clients 1 --validate --mode " + GetParam() + " -c " + connection;
    const Json whole = result_of("echo_rate --fabric sim:cib" + options);
    const Json result = result_of("echo_rate --fabric " + lossy + options);
    EXPECT_GT(result.at("lost").get<int>(), 10) << options;
    EXPECT_GT(result.at("rate_mops").get<double>(), 0.9 * whole.at("rate_mops").get<double>()) << options;
  }
}

TEST(EchoRate, ALostRequestIsGivenUpAlsoWhenNoOtherIsOutstanding) {
  const TempDir folder;
  const std::string lossy = test::changed_cluster(folder, {{"/fabric/loss_probability", 0.01}});
  for (const char* options : {"--mode send_send -c UD", "--mode write_write -c UC", "--mode write_send -c UC"}) {
    const Json result = result_of("echo_rate --window 1 --client_threads 1 -D 20ms --fabric " + lossy + " " + options);
    // One echo of fifty takes 1 ms instead of 2 us: 20 ms have room for about twenty times fifty.
    EXPECT_GT(result.at("lost").get<int>(), 5) << options;
    EXPECT_GT(result.at("ops").get<int>(), 250) << options;
  }
}

TEST(EchoRate, EachOptimisationHasThoseBeforeIt) {
  const auto config = [](const std::string& level) {
    const test::Ran ran = test::run_program("echo_rate --fabric sim:cib -D 20us --warmup 10us --optimise " + level +
                                            " --out_json_file -");
    const Json all = parse_json_text(ran.out, level).at("config");
    return Json{all.at("connection"), all.at("cq_mod"), all.at("inlined")};
  };
  EXPECT_EQ(config("none"), Json({"RC", 1, false}));
  EXPECT_EQ(config("unreliable"), Json({"UC", 1, false}));
  EXPECT_EQ(config("unsignaled"), Json({"UC", 64, false}));
  EXPECT_EQ(config("inline"), Json({"UC", 64, true}));
  EXPECT_EQ(config("inline -c RC -I 0 -Q 1"), Json({"RC", 1, false}));  // what is given stays
}

TEST(EchoRate, AWindowOfOneRunsAtOneEchoPerRoundTrip) {
  // verb_latency measures the same exchange from the other side.
  const double trip = latency_of("cib", "--verb echo -s 32");
  const double rate =
      result_of("echo_rate --fabric sim:cib --optimise inline --window 1 --client_threads 1 -D 200us").at("rate_mops");
  EXPECT_NEAR(rate, 1e3 / trip, 0.1 * 1e3 / trip);
}

TEST(EchoRate, RefusesWhatMakesNoSense) {
  EXPECT_THAT(refusal_of("echo_rate --fabric sim:cib -s 4"), HasSubstr("--size 4"));
  EXPECT_THAT(refusal_of("echo_rate --fabric sim:cib -c UD"), HasSubstr("--connection UD"));
  EXPECT_THAT(refusal_of("echo_rate --fabric sim:cib -e"), HasSubstr("--events"));
}

TEST(WriteVisibility, SeesTheBytesOfASimulatedWriteFromLeftToRight) {
  const Json result = result_of("write_visibility --fabric sim:cib -D 2ms");
  EXPECT_GT(result.at("order").at("boundaries_seen").get<int>(), 100);
  EXPECT_EQ(result.at("order").at("out_of_order"), 0);
  EXPECT_GT(result.at("after_write").at("told").get<int>(), 50);
  EXPECT_EQ(result.at("after_write").at("not_visible"), 0);
  EXPECT_EQ(result.at("after_write_read").at("not_visible"), 0);
}

TEST(WriteVisibility, AReadBehindAWriteCostsLessThanAReadAlone) {
  const Json result = result_of("write_visibility --fabric sim:cib -s 64 -D 2ms");
  const double more = result.at("write_read_lat_p50_ns").get<double>() - result.at("write_lat_p50_ns").get<double>();
  EXPECT_GT(more, 0);
  EXPECT_LT(more, latency_of("cib", "--verb read -s 8"));  // the two overlap
}

TEST(WriteVisibility, SaysWhatItSawAndHowOftenItLooked) {
  const test::Ran ran = test::run_program("write_visibility --fabric sim:cib -D 1ms");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::ContainsRegex("order: 0 of [0-9]+ boundaries seen within a WRITE were out of order"));
  EXPECT_THAT(ran.out, testing::ContainsRegex("completed WRITEs: 0 of [0-9]+ not yet visible when the CPU was told"));
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("guarantee")));
}

TEST(WriteVisibility, SaysThatThereWasNoSampleOfAKind) {
  const test::Ran ran = test::run_program("write_visibility --fabric sim:cx3 -n 1");  // one of the two kinds
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("no sample"));
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("us more")));
}

}  // namespace
}  // namespace verbscope
