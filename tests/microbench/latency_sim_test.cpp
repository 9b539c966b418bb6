// verb_latency as a program on simulated clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/microbench/changed_cluster.hpp"
#include "tests/microbench/run_program.hpp"

namespace verbscope {
namespace {

using test::record_of;
using test::records_of;
using test::refusal_of;
using test::result_of;
using testing::Gt;
using testing::HasSubstr;

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
  EXPECT_LT(latency_of(GetParam(), "--verb write_inline -s 8") + 100, latency_of(GetParam(), "--verb write -I 0 -s 8"));
}

TEST_P(LatencyOn, AnEchoTakesAboutAsLongAsARead) {
  const double read = latency_of(GetParam(), "--verb read -s 8");
  EXPECT_NEAR(latency_of(GetParam(), "--verb echo -s 8"), read, 0.2 * read);
}

TEST_P(LatencyOn, AnEchoIsTwoInlinedWrites) {
  // Half and full round trip of the same echo; only signalling differs.
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
  const double dma_read = latency_of("cib", "--verb write -I 0 -s 8") - latency_of("cib", "--verb write_inline -s 8");
  const double step = latency_of("cib", "--verb write_inline -s 221") - latency_of("cib", "--verb write_inline -s 220");
  EXPECT_NEAR(step, dma_read, 0.25 * dma_read);
}

// perftest's default for WRITE, 220 B: the payload of 221 B is read by DMA.
TEST_P(LatencyOn, InlinesUpTo220BytesByDefault) {
  for (const char* verb : {"--verb write", "--verb send"}) {
    const std::string run = "verb_latency --fabric sim:" + GetParam() + " -D 200us --warmup 20us " + verb;
    const auto config = [&run](const std::string& options) { return record_of(run + options).at("config"); };
    EXPECT_EQ(config(" -s 220").at("inlined"), true) << verb;
    EXPECT_EQ(config(" -s 221").at("inlined"), false) << verb;
    EXPECT_EQ(config(" -s 64").at("inline_size"), 220) << verb;
    EXPECT_EQ(config(" -s 64 -I 0").at("inlined"), false) << verb;
  }
  EXPECT_EQ(
      record_of("verb_latency --fabric sim:cib --verb read -D 200us --warmup 20us").at("config").at("inline_size"), 0);
}

TEST(Latency, InlinesNoMoreThanTheDeviceAllows) {
  const TempDir folder;
  const std::string fabric = test::changed_cluster(folder, {{"/wire/max_inline_bytes", 100}});
  const std::string run = "verb_latency --verb write -D 200us --warmup 20us --fabric " + fabric;
  EXPECT_EQ(record_of(run).at("config").at("inline_size"), 100);
  EXPECT_EQ(record_of(run + " -s 101").at("config").at("inlined"), false);
}

TEST(Latency, PrintsTheInlinedSizeInTheFirstLine) {
  const auto first_line = [](const std::string& options) {
    const std::string out = test::run_program("verb_latency --fabric sim:cib -D 200us --warmup 20us " + options).out;
    return out.substr(0, out.find('\n'));
  };
  EXPECT_THAT(first_line("-s 64"), HasSubstr("64 B inline"));
  EXPECT_THAT(first_line("-s 64 -I 0"), testing::Not(HasSubstr("inline")));
  EXPECT_THAT(first_line("-a -s 256"), HasSubstr("inline up to 220 B"));
}

TEST(Latency, EveryTripArrivesIntact) {
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

TEST(Latency, RecordsHalfOrFullTrip) {
  EXPECT_EQ(result_of("verb_latency --fabric sim:cib --verb write -n 64").at("trip"), "half");
  EXPECT_EQ(result_of("verb_latency --fabric sim:cib --verb read -n 64").at("trip"), "full");
  const test::Ran ran = test::run_program("verb_latency --fabric sim:cib --verb send -n 64");
  EXPECT_THAT(ran.out, HasSubstr("half round trips"));
  EXPECT_THAT(ran.out, HasSubstr("simulated"));
}

TEST(Latency, MeasuresExactlyTheItersOfEachThread) {
  EXPECT_EQ(result_of("verb_latency --fabric sim:cib --verb read -n 640").at("lat_samples"), 640);
  EXPECT_EQ(result_of("verb_latency --fabric sim:cib --verb write -n 64 --threads 2").at("lat_samples"), 128);
}

// One trip has a latency, but no rate.
TEST(Latency, OneTripHasALatencyButNoRate) {
  const test::Ran ran = test::run_program("verb_latency --fabric sim:cib --verb read -n 1");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("one operation has no rate"));
  EXPECT_THAT(ran.out, testing::Not(HasSubstr("Mops over")));
}

TEST(Latency, EachThreadHasAResponderOnEveryTransport) {
  // A thread without a responder has no trip, and the run would fail.
  for (const char* options : {"--threads 5", "--threads 2 --clients 1", "--threads 2 -c UD --verb send",
                              "--threads 3 --clients 2 -c UD --verb send", "--threads 5 --clients 2 --client_threads 3",
                              "--threads 5 --verb read --client_threads 1"}) {
    const Json result = result_of(std::string("verb_latency --fabric sim:cib -D 100us --warmup 50us ") + options);
    EXPECT_THAT(result.value("lat_samples", 0), Gt(10)) << options;
  }
  EXPECT_THAT(refusal_of("verb_latency --fabric sim:cib --threads 5 --clients 2 --client_threads 2"),
              HasSubstr("--client_threads 2: too few"));
}

TEST(Latency, AllWritesARecordPerPayload) {
  const std::vector<Json> records =
      records_of("verb_latency --fabric sim:cib --verb write -a -s 3000 -D 2ms --warmup 100us");
  std::vector<int> sizes;
  double before = 0;
  for (const Json& record : records) {
    ASSERT_EQ(record.at("result").at("latency").size(), 1u);
    const Json& point = record.at("result").at("latency").front();
    sizes.push_back(point.at("size"));
    EXPECT_EQ(record.at("config").at("size"), sizes.back());
    EXPECT_GT(point.at("lat_samples").get<int>(), 100);
    EXPECT_GE(point.at("lat_p50_ns").get<double>(), before * 0.99);
    before = point.at("lat_p50_ns");
    std::uint64_t samples = 0;
    for (const Json& bucket : point.at("lat_histogram_ns")) samples += bucket.at(1).get<std::uint64_t>();
    EXPECT_EQ(samples, point.at("lat_samples").get<std::uint64_t>());
  }
  EXPECT_THAT(sizes, testing::ElementsAre(2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3000));
  EXPECT_EQ(records_of("verb_latency --fabric sim:cib --verb echo -a -n 10").size(), 7u);  // up to what is inlined
}

// As in perftest, each line is printed when its size is done.
TEST(Latency, AllPrintsALinePerSizeAsItIsDone) {
  const std::string run = "verb_latency --fabric sim:cib --verb send -s 64 -n ";
  const test::Ran ran = test::run_program(run + "100 -a");
  EXPECT_THAT(ran.out, HasSubstr("simulated"));
  std::vector<int> sizes;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (int size = 0, trips = 0; words >> size >> trips) {
      sizes.push_back(size);
      EXPECT_EQ(trips, 100) << line;
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
  EXPECT_THAT(sizes, testing::ElementsAre(2, 4, 8, 16, 32, 64));
}

TEST(Latency, RefusesInvalidOptions) {
  const std::string program = "verb_latency --fabric sim:cib ";
  EXPECT_THAT(refusal_of(program + "-q 2"), HasSubstr("--qp 2"));
  EXPECT_THAT(refusal_of(program + "--verb write -s 0"), HasSubstr("--size 0"));
  EXPECT_THAT(refusal_of(program + "--verb fetch_add -s 16"), HasSubstr("an atomic has 8 bytes"));
  EXPECT_THAT(refusal_of(program + "--verb fetch_add -a"), HasSubstr("an atomic has 8 bytes"));
  EXPECT_THAT(refusal_of(program + "--verb send -c UD -a"), HasSubstr("--size, at most the MTU"));
  EXPECT_THAT(refusal_of(program + "--verb read -c UC"), HasSubstr("--connection UC"));
  EXPECT_THAT(refusal_of(program + "--verb echo -e"), HasSubstr("--events"));
  EXPECT_THAT(refusal_of("verb_latency --fabric null --verb send"),
              AllOf(HasSubstr("--verb send"), HasSubstr("--fabric null")));
  EXPECT_THAT(refusal_of("verb_latency --fabric null --verb fetch_add"),
              AllOf(HasSubstr("--verb fetch_add"), HasSubstr("--fabric null")));
  for (const char* verb : {"read", "fetch_add", "compare_swap"}) {  // it would time the posts of all but one in eight
    EXPECT_THAT(refusal_of(program + "-Q 8 -n 160 --verb " + verb), HasSubstr("--cq_mod 8"));
  }
}

}  // namespace
}  // namespace verbscope
