#include "common/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace verbscope {
namespace {

// Log-uniform samples from 1 ps to 100 s: every octave is used.
std::vector<std::int64_t> log_uniform(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(0.0, 14.0);
  std::vector<std::int64_t> samples(n);
  for (auto& s : samples) s = static_cast<std::int64_t>(std::pow(10.0, exponent(random)));
  return samples;
}

// Latencies as they are: 2 us with a long tail.
std::vector<std::int64_t> tailed(std::size_t n, unsigned seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> latency(std::log(2e6), 0.5);
  std::vector<std::int64_t> samples(n);
  for (auto& s : samples) s = static_cast<std::int64_t>(latency(random));
  return samples;
}

Histogram histogram_of(const std::vector<std::int64_t>& samples) {
  Histogram histogram;
  for (const auto s : samples) histogram.record(Picos(s));
  return histogram;
}

class Percentiles : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Percentiles, HaveTheStatedErrorAgainstAnExactSort) {
  for (const auto& make : {log_uniform, tailed}) {
    auto samples = make(GetParam(), 17);
    const Histogram histogram = histogram_of(samples);
    std::sort(samples.begin(), samples.end());
    for (const std::size_t per_10000 : {1u, 100u, 5000u, 9000u, 9900u, 9990u, 9999u, 10000u}) {
      const std::size_t rank = std::max<std::size_t>(1, (per_10000 * samples.size() + 9999) / 10000);  // nearest rank
      const auto exact = static_cast<double>(samples[rank - 1]);
      const auto got = static_cast<double>(histogram.percentile(static_cast<double>(per_10000) / 100).count());
      EXPECT_LE(std::abs(got - exact), exact * Histogram::kRelativeError) << per_10000 << " of " << samples.size();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Percentiles, ::testing::Values(1, 2, 10, 999, 1000, 10000, 300000));

TEST(Histogram, EveryValueHasTheStatedError) {
  // One sample between two others, so that neither the exact minimum nor the exact maximum hides the bucket.
  for (std::int64_t value = 1; value < (std::int64_t{1} << 62); value += 1 + value / 37) {
    Histogram histogram;
    histogram.record(Picos(0));
    histogram.record(Picos(value));
    histogram.record(Picos(INT64_MAX));
    const auto got = static_cast<double>(histogram.percentile(50).count());
    ASSERT_LE(std::abs(got - static_cast<double>(value)), static_cast<double>(value) * Histogram::kRelativeError);
  }
}

TEST(Histogram, CountMinMaxAndMeanAreExact) {
  const auto samples = log_uniform(5000, 3);
  const Histogram histogram = histogram_of(samples);
  __extension__ unsigned __int128 sum = 0;
  for (const auto s : samples) sum += static_cast<std::uint64_t>(s);
  EXPECT_EQ(histogram.count(), samples.size());
  EXPECT_EQ(histogram.min().count(), *std::min_element(samples.begin(), samples.end()));
  EXPECT_EQ(histogram.max().count(), *std::max_element(samples.begin(), samples.end()));
  EXPECT_EQ(histogram.mean().count(), static_cast<std::int64_t>((sum + 2500) / 5000));
}

TEST(Histogram, RecordsTheLargestTimes) {
  Histogram histogram;
  for (int i = 0; i < 4; ++i) histogram.record(Picos(INT64_MAX));
  EXPECT_EQ(histogram.mean().count(), INT64_MAX);
  EXPECT_EQ(histogram.percentile(50).count(), INT64_MAX);
}

TEST(Histogram, CountsANegativeTimeAsZero) {
  Histogram histogram;
  histogram.record(Picos(-5));
  EXPECT_EQ(histogram.count(), 1u);
  EXPECT_EQ(histogram.min(), Picos(0));
}

TEST(Histogram, MergeEqualsRecordingAll) {
  const auto samples = tailed(2000, 5);
  const std::vector<std::int64_t> first(samples.begin(), samples.begin() + 700);
  const std::vector<std::int64_t> second(samples.begin() + 700, samples.end());
  Histogram merged = histogram_of(first);
  merged.merge(histogram_of(second));
  merged.merge(Histogram());
  EXPECT_EQ(merged.to_json(), histogram_of(samples).to_json());
}

TEST(Histogram, JsonHasNanosecondsUnderKeysWithUnits) {
  Histogram histogram;
  for (int i = 1; i <= 100; ++i) histogram.record(Nanos(1));
  EXPECT_EQ(dump_json(histogram.to_json()),
            R"({"lat_samples":100,"lat_min_ns":1.0,"lat_mean_ns":1.0,"lat_p50_ns":1.0,"lat_p90_ns":1.0,)"
            R"("lat_p99_ns":1.0,"lat_p99_9_ns":1.0,"lat_p99_99_ns":1.0,"lat_max_ns":1.0})");
}

TEST(Histogram, PackAndUnpackRoundTrip) {
  const Histogram sent = histogram_of({0, 5, 1'000, 1'000, 123'456'789, 9'876'543'210});
  const Histogram received = Histogram::unpack(parse_json_text(dump_json(sent.pack()), "packed"), "packed");
  EXPECT_EQ(received.to_json(), sent.to_json());
  Histogram merged;
  merged.merge(received);
  EXPECT_EQ(merged.to_json(), sent.to_json());
  EXPECT_EQ(Histogram::unpack(Histogram().pack(), "packed").count(), 0u);
  Json wrong = sent.pack();
  wrong["buckets"].push_back(Json::array({Histogram::kBuckets, 1}));
  EXPECT_THROW(Histogram::unpack(wrong, "packed"), Error);
}

TEST(Histogram, EmptyHistogramHasNoTimes) {
  const Json json = Histogram().to_json("read");
  EXPECT_EQ(json["read_samples"], 0);
  EXPECT_TRUE(json["read_p99_ns"].is_null());
  EXPECT_EQ(Histogram().percentile(99), Picos(0));
}

}  // namespace
}  // namespace verbscope
