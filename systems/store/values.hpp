// The bytes of each version of each value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/hash.hpp"

namespace verbscope {

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

// What bytes that were read under a key say. Of values under 8 bytes a version has its low bits (kShort*) alone.
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
