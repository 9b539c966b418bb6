#include "common/histogram.hpp"

#include <algorithm>
#include <cmath>

#include "common/error.hpp"

namespace verbscope {

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

Picos Histogram::mean() const {
  if (count_ == 0) return Picos(0);
  return Picos(static_cast<std::int64_t>((sum_ + count_ / 2) / count_));
}

std::int64_t Histogram::middle_of(std::size_t bucket) {
  constexpr std::size_t kExact = std::size_t{2} << kSubBits;  // below this, each value has a bucket
  if (bucket < kExact) return static_cast<std::int64_t>(bucket);
  const std::size_t shift = (bucket >> kSubBits) - 1;
  const std::uint64_t low = (bucket - (shift << kSubBits)) << shift;
  return static_cast<std::int64_t>(low + (std::uint64_t{1} << shift) / 2);
}

Picos Histogram::percentile(double percent) const {
  if (count_ == 0) return Picos(0);
  // 99.9 % of 1000 samples must be rank 999, although 0.999 * 1000 may round up: hence the small tolerance.
  const double exact_rank = std::clamp(percent, 0.0, 100.0) * static_cast<double>(count_) / 100.0;
  const auto rank = static_cast<std::uint64_t>(std::ceil(exact_rank - 1e-6));
  if (rank <= 1) return min();
  if (rank >= count_) return max();
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while ((seen += buckets_[bucket]) < rank) ++bucket;
  return Picos(std::clamp(middle_of(bucket), min_, max_));
}

Json Histogram::pack() const {
  Json buckets = Json::array();
  for (std::size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i] > 0) buckets.push_back(Json::array({i, buckets_[i]}));
  }
  return Json{{"sum_ps", static_cast<std::uint64_t>(sum_)}, {"min_ps", min_}, {"max_ps", max_}, {"buckets", buckets}};
}

Histogram Histogram::unpack(const Json& packed, const std::string& where) {
  JsonFields fields(packed, where);
  Histogram out;
  out.sum_ = fields.require<std::uint64_t>("sum_ps");
  out.min_ = fields.require<std::int64_t>("min_ps");
  out.max_ = fields.require<std::int64_t>("max_ps");
  for (const Json& each : fields.require<std::vector<Json>>("buckets")) {
    const auto pair = json_value<std::vector<std::uint64_t>>(each, where + ": buckets");
    if (pair.size() != 2 || pair[0] >= kBuckets) fail("{}: buckets: expected [bucket, count]", where);
    out.buckets_[pair[0]] += pair[1];
    out.count_ += pair[1];
  }
  fields.reject_unknown();
  return out;
}

Json Histogram::to_json(const std::string& prefix) const {
  Json out = Json::object();
  const auto put = [&](const char* name, Picos value) {
    const std::string key = prefix + "_" + name + "_ns";
    if (count_ == 0) {
      out[key] = nullptr;
    } else {
      out[key] = static_cast<double>(value.count()) / 1e3;
    }
  };
  out[prefix + "_samples"] = count_;
  put("min", min());
  put("mean", mean());
  put("p50", percentile(50));
  put("p90", percentile(90));
  put("p99", percentile(99));
  put("p99_9", percentile(99.9));
  put("p99_99", percentile(99.99));
  put("max", max());
  return out;
}

}  // namespace verbscope
