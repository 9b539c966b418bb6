// The keys and values of ordered_kv. A value is a function of its key and of its version, the number of PUTs of the
// key so far. Values of different keys can be added, so that the sum of a scan tells the sum of the versions.
#pragma once

#include <cstdint>
#include <vector>

#include "common/hash.hpp"

namespace verbscope::ordered {

// Different numbers have different keys: mix() is one-to-one.
constexpr std::uint64_t key_of(std::uint64_t number) {
  return mix(number);
}
constexpr std::uint64_t value_of(std::uint64_t key, std::uint64_t version) {
  return mix(key) + version * kMixStep;
}

// The inverse of an odd number modulo 2^64, by Newton's method: each step doubles the bits that are right.
constexpr std::uint64_t inverse_of(std::uint64_t odd) {
  std::uint64_t inverse = odd;  // right in three bits
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// All keys in order. Answers what a scan must find.
class KeyTable {
 public:
  explicit KeyTable(std::uint64_t keys);

  std::uint64_t size() const { return keys_.size(); }
  std::uint64_t key(std::uint64_t place) const { return keys_[place]; }
  // Keys that a scan of `length` keys from a place on finds.
  std::uint64_t found(std::uint64_t place, std::uint64_t length) const {
    return length < size() - place ? length : size() - place;
  }
  // Of `count` keys from a place on: their sum, and the sum of their versions if `values` is the sum of their values.
  std::uint64_t sum(std::uint64_t place, std::uint64_t count) const { return sums_[place + count] - sums_[place]; }
  std::uint64_t versions(std::uint64_t place, std::uint64_t count, std::uint64_t values) const {
    return (values - (first_values_[place + count] - first_values_[place])) * kInverseStep;
  }

 private:
  static constexpr std::uint64_t kInverseStep = inverse_of(kMixStep);
  static_assert(kInverseStep * kMixStep == 1);

  std::vector<std::uint64_t> keys_;
  // Sums modulo 2^64 over the keys before a place: of the keys, and of their values of version 0.
  std::vector<std::uint64_t> sums_, first_values_;
};

}  // namespace verbscope::ordered
