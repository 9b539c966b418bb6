#include "systems/store/workload.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/hash.hpp"

namespace verbscope {

namespace {

// log1p(x) / x and expm1(x) / x, also where x is 0.
double log1p_over(double x) {
  return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2;
}
double expm1_over(double x) {
  return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2;
}

// Uniform in [0, 1).
double fraction(std::uint64_t random) {
  return static_cast<double>(random >> 11) * 0x1p-53;
}

}  // namespace

Zipf::Zipf(std::uint64_t count, double exponent)
    : count_(static_cast<double>(count)),
      exponent_(exponent),
      first_(integral(1.5) - 1),
      last_(integral(count_ + 0.5)),
      near_(2 - from_integral(integral(2.5) - density(2))) {}

double Zipf::integral(double x) const {
  const double log = std::log(x);
  return expm1_over((1 - exponent_) * log) * log;
}

double Zipf::from_integral(double y) const {
  const double t = std::max(y * (1 - exponent_), -1.0);
  return std::exp(log1p_over(t) * y);
}

double Zipf::density(double x) const {
  return std::exp(-exponent_ * std::log(x));
}

std::uint64_t Zipf::rank(std::uint64_t random) const {
  for (;; random = mix(random)) {
    const double y = last_ + fraction(random) * (first_ - last_);
    const double x = from_integral(y);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, count_);
    if (rank - x <= near_ || y >= integral(rank + 0.5) - density(rank)) return static_cast<std::uint64_t>(rank) - 1;
  }
}

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint64_t kShortNumbers = (std::uint64_t{1} << StoreValues::kShortNumberBits) - 1;

// The short form of a version, and back.
std::uint64_t shorten(StoreVersion version) {
  if (version.initial()) return 0;
  return (std::uint64_t{version.writer()} + 1) << StoreValues::kShortNumberBits | (version.number() & kShortNumbers);
}
StoreVersion lengthen(std::uint64_t word) {
  const auto writer = static_cast<std::uint32_t>(word >> StoreValues::kShortNumberBits);
  return writer == 0 && word == 0 ? StoreVersion() : StoreVersion(writer - 1, word & kShortNumbers);
}

}  // namespace

std::uint64_t StoreValues::plain(StoreVersion version) const {
  return short_versions() ? shorten(version) : version.word();
}

bool StoreValues::begins(const std::byte* value, std::uint64_t key, StoreVersion version) const {
  const std::uint64_t word = plain(version) ^ mask(key, 0);
  return std::memcmp(value, &word, std::min(kWord, bytes_)) == 0;
}

void StoreValues::fill(std::byte* value, std::uint64_t key, StoreVersion version) const {
  const std::uint64_t word_of_all = plain(version);
  for (std::size_t at = 0, place = 0; at < bytes_; at += kWord, ++place) {
    const std::uint64_t word = word_of_all ^ mask(key, place);
    std::memcpy(value + at, &word, std::min(kWord, bytes_ - at));
  }
}

StoreReading StoreValues::read(const std::byte* value, std::uint64_t key) const {
  const auto word_at = [&](std::size_t place) {
    std::uint64_t word = 0;
    std::memcpy(&word, value + place * kWord, std::min(kWord, bytes_ - place * kWord));
    return word;
  };
  StoreReading reading;
  if (short_versions()) {
    const std::uint64_t word = word_at(0);
    reading.first = reading.last = lengthen((word ^ mask(key, 0)) & 0xffffffff);
    std::uint64_t expected = shorten(reading.first) ^ mask(key, 0);
    reading.whole = std::memcmp(&word, &expected, bytes_) == 0;
    return reading;
  }
  const std::uint64_t plain = word_at(0) ^ mask(key, 0);
  reading.whole = true;
  std::uint64_t last = plain;
  std::size_t place = 1;
  for (; (place + 1) * kWord <= bytes_; ++place) {
    last = word_at(place) ^ mask(key, place);
    reading.whole = reading.whole && last == plain;
  }
  if (place * kWord < bytes_) {
    const std::uint64_t expected = plain ^ mask(key, place);
    reading.whole = reading.whole && std::memcmp(value + place * kWord, &expected, bytes_ - place * kWord) == 0;
  }
  reading.first = StoreVersion::of_word(plain);
  reading.last = StoreVersion::of_word(last);
  return reading;
}

}  // namespace verbscope
