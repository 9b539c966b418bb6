// Latency histogram with constant memory: log-linear buckets (128 per octave, the layout of HdrHistogram) over the
// whole range of Picos. Percentiles have a bounded relative error; count, min, max and mean are exact.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/units.hpp"

namespace verbscope {

class Histogram {
 public:
  static constexpr int kSubBits = 7;
  // A percentile is the middle of a bucket, whose width is at most 1/128 of its lower end.
  static constexpr double kRelativeError = 1.0 / 256;
  // Values below 2^7 ps have one bucket each; above, each of the octaves 7 to 62 has 128 buckets.
  static constexpr std::size_t kBuckets = (63 - kSubBits + 1) << kSubBits;

  Histogram() : buckets_(kBuckets) {}

  // Allocates nothing. A negative time counts as 0.
  void record(Picos latency) {
    const std::int64_t value = latency.count() < 0 ? 0 : latency.count();
    ++buckets_[bucket_of(value)];
    ++count_;
    sum_ += value;
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }

  void merge(const Histogram& other);
  // Allocates nothing.
  void clear() {
    std::ranges::fill(buckets_, 0);
    count_ = 0;
    sum_ = 0;
    min_ = INT64_MAX;
    max_ = 0;
  }

  std::uint64_t count() const { return count_; }
  // Exact (the mean to the nearest picosecond); 0 if the histogram is empty.
  Picos min() const { return Picos(count_ == 0 ? 0 : min_); }
  Picos max() const { return Picos(max_); }
  Picos mean() const;

  // Nearest rank: the smallest sample such that at least `percent` % of the samples are not larger, within
  // kRelativeError. Percent 0 is the exact minimum, 100 the exact maximum. 0 if the histogram is empty.
  Picos percentile(double percent) const;

  // Calls visit(Picos, count) for each non-empty bucket in order of time, with the middle of the bucket.
  template <class Visit>
  void each_bucket(Visit&& visit) const {
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      if (buckets_[bucket] > 0) visit(Picos(middle_of(bucket)), buckets_[bucket]);
    }
  }

  // {"lat_samples", "lat_min_ns", "lat_mean_ns", "lat_p50_ns", "lat_p90_ns", "lat_p99_ns", "lat_p99_9_ns",
  // "lat_p99_99_ns", "lat_max_ns"}; times are null without samples.
  Json to_json(const std::string& prefix = "lat") const;

  // The whole histogram as JSON, at most a few kilobytes, to be merged in another process. unpack throws Error, which
  // begins with `where`, on anything that pack does not produce.
  Json pack() const;
  static Histogram unpack(const Json& packed, const std::string& where);

 private:
  __extension__ using Wide = unsigned __int128;

  static std::size_t bucket_of(std::int64_t value) {
    const auto v = static_cast<std::uint64_t>(value);
    if (v < (1u << kSubBits)) return v;
    const int shift = static_cast<int>(std::bit_width(v)) - 1 - kSubBits;  // number of bits of v below its leading 8
    return (static_cast<std::size_t>(shift) << kSubBits) + (v >> shift);
  }
  static std::int64_t middle_of(std::size_t bucket);

  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  Wide sum_ = 0;
  std::int64_t min_ = INT64_MAX;
  std::int64_t max_ = 0;
};

}  // namespace verbscope
