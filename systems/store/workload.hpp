// The workload of a key-value store's clients: keys and their hashes, the operations of each client, and the bytes of
// each version of each value. All of it is a function of the seed, so that a reader of a value can tell whether the
// operation that the value names was a PUT of that key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/hash.hpp"
#include "lookups/mica_store.hpp"
#include "systems/store/options.hpp"

namespace verbscope {

// Zipf's law: of `count` things the one of rank r (from 1) is taken with a probability in proportion to r^-exponent.
//
// Rejection-inversion (Hormann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
// distributions", ACM TOMACS 6, 1996): exact, in constant time and memory.
class Zipf {
 public:
  // `count` is from 1 to 2^32, `exponent` above 0.
  Zipf(std::uint64_t count, double exponent);

  // The rank, from 0 on, that a uniform random number stands for: the same for the same number. Allocates nothing.
  std::uint64_t rank(std::uint64_t random) const;

 private:
  double integral(double x) const;       // of the density, from 1 to x
  double from_integral(double y) const;  // its inverse
  double density(double x) const;

  double count_;
  double exponent_;
  double first_;  // integral(1.5) - 1
  double last_;   // integral(count + 0.5)
  double near_;   // a rank at most this far above its place is accepted at once
};

using lookups::KeyHash;

// One operation of a client.
struct StoreOp {
  std::uint64_t key = 0;  // its number, from 0 on
  bool put = false;
  bool operator==(const StoreOp&) const = default;
};

class StoreWorkload {
 public:
  StoreWorkload(const StoreOptions& options, std::uint64_t seed)
      : seed_(mix(seed)), keys_(options.keys), put_percent_(options.put_percent) {
    if (options.zipf) zipf_.emplace(options.keys, *options.zipf);
  }

  // Operation `number`, from 0 on, of client thread `client` among all. Data path.
  StoreOp op(std::uint32_t client, std::uint64_t number) const {
    const std::uint64_t random = mix(mix(seed_ + client) + number * kMixStep);
    StoreOp op;
    op.put = (random & 0xffffffff) * 100 >> 32 < put_percent_;
    op.key = zipf_ ? zipf_->rank(mix(random)) : (random >> 32) * keys_ >> 32;
    return op;
  }

  // The hash of a key. Neither half is 0, nor is the last byte in memory, by which servers detect a request.
  KeyHash hash(std::uint64_t key) const {
    const std::uint64_t low = mix(seed_ ^ key);
    const std::uint64_t high = mix(low ^ key);
    return {low != 0 ? low : 1, high >> 56 != 0 ? high : high | std::uint64_t{1} << 56};
  }

 private:
  std::uint64_t seed_;
  std::uint64_t keys_;
  std::uint32_t put_percent_;
  std::optional<Zipf> zipf_;
};

// The thread of the server, of `threads`, that owns a key.
constexpr std::uint32_t owner_of(const KeyHash& hash, std::uint32_t threads) {
  return hash.server() % threads;
}

// The PUT that wrote a value: operation `number` of a client thread; or, of a value that was there before the run,
// none.
class StoreVersion {
 public:
  static constexpr std::uint32_t kMaxWriters = (1u << 20) - 1;

  constexpr StoreVersion() = default;  // before the run
  constexpr StoreVersion(std::uint32_t writer, std::uint64_t number)
      : word_((std::uint64_t{writer} + 1) << kNumberBits | (number & kNumbers)) {}
  static constexpr StoreVersion of_word(std::uint64_t word) {
    StoreVersion version;
    version.word_ = word;
    return version;
  }

  constexpr bool initial() const { return word_ == 0; }
  constexpr std::uint32_t writer() const { return static_cast<std::uint32_t>(word_ >> kNumberBits) - 1; }
  constexpr std::uint64_t number() const { return word_ & kNumbers; }
  constexpr std::uint64_t word() const { return word_; }
  bool operator==(const StoreVersion&) const = default;

 private:
  static constexpr int kNumberBits = 44;
  static constexpr std::uint64_t kNumbers = (std::uint64_t{1} << kNumberBits) - 1;
  std::uint64_t word_ = 0;
};

// The versions in bytes that were read under a key. For values under 8 bytes only the low bits (kShort*) of a version.
struct StoreReading {
  bool whole = false;  // every byte is that of `first`
  StoreVersion first;  // that of the first word
  StoreVersion last;   // that of the last whole word
};

// Every word of a value is its version, hidden under a mask that depends on seed, key and place. A value under 8 bytes
// has a short form of the version, of 32 bits.
class StoreValues {
 public:
  static constexpr int kShortNumberBits = 20;  // low bits of the PUT's number in a short version
  static constexpr std::uint32_t kMaxShortWriters = (1u << 12) - 1;

  StoreValues(std::uint64_t seed, std::size_t bytes) : seed_(mix(seed)), bytes_(bytes) {}

  std::size_t bytes() const { return bytes_; }
  bool short_versions() const { return bytes_ < sizeof(std::uint64_t); }
  // Client threads that a version in a value can name.
  std::uint32_t max_writers() const { return short_versions() ? kMaxShortWriters : StoreVersion::kMaxWriters; }

  // Data path, all of them.
  void fill(std::byte* value, std::uint64_t key, StoreVersion version) const;
  StoreReading read(const std::byte* value, std::uint64_t key) const;
  // Whether the first word, or all of a value under 8 bytes, is that of `version`.
  bool begins(const std::byte* value, std::uint64_t key, StoreVersion version) const;

 private:
  std::uint64_t plain(StoreVersion version) const;
  std::uint64_t mask(std::uint64_t key, std::uint64_t place) const { return mix(mix(seed_ ^ key) + place * kMixStep); }

  std::uint64_t seed_;
  std::size_t bytes_;
};

}  // namespace verbscope
