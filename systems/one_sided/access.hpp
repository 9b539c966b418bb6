// How a client reads the items of a store without the server's CPU. An access has
// - `Get`, one outstanding GET: `begin(access, hash)` returns what to READ first, `take(access, got, piece, counts)`
// what to READ next, or the result;
// - `Puts`, PUTs by one thread of the server: `put(node, hash, value)`, false if there is no such key;
// - `region_bytes()`, `fill(region, contents)`, `largest_read()`.
// Data path, but for the filling.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>

#include "common/hash.hpp"
#include "common/units.hpp"
#include "lookups/mica_store.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

inline constexpr std::uint32_t kStoreKeyBytes = sizeof(lookups::KeyHash);

// The contents of a table before the run: the hash of key number i, and its value.
struct TableContents {
  std::function<lookups::KeyHash(std::uint64_t)> hash_of;
  std::function<void(std::uint64_t, std::byte*)> fill_value;
};

// A piece of the server's region to READ.
struct RegionPiece {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
};

// The next step of a GET: READ the piece, possibly the same again; the value was found at `value`; bytes without a
// meaning were READ (by an emulation); or there is no such key.
struct GetStep {
  enum class Kind : std::uint8_t { read_on, found, unchecked, missing };
  Kind kind = Kind::read_on;
  const std::byte* value = nullptr;

  static GetStep on() { return {}; }
  static GetStep found(const std::byte* value) { return {Kind::found, value}; }
  static GetStep unchecked() { return {Kind::unchecked, nullptr}; }
  static GetStep missing() { return {Kind::missing, nullptr}; }
};

// READs by where they begin behind a multiple of kPeriod, the largest boundary at which PCIe cuts them (RCB).
class ReadCounts {
 public:
  static constexpr std::uint64_t kPeriod = 128;

  void count(const RegionPiece& piece) { ++at_[piece.offset % kPeriod]; }
  void add(const ReadCounts& other) {
    for (std::size_t i = 0; i < kPeriod; ++i) at_[i] += other.at_[i];
  }
  std::uint64_t sum() const { return std::reduce(at_.begin(), at_.end()); }
  std::span<const std::uint64_t> by_offset() const { return at_; }

 private:
  std::array<std::uint64_t, kPeriod> at_{};
};

// What the GETs of a client READ.
struct GetCounts {
  ReadCounts probes;        // of the index: buckets, neighbourhoods
  ReadCounts values;        // of values outside the index
  std::uint64_t torn = 0;   // READ while the server wrote, and READ again
  std::uint64_t moved = 0;  // values whose place was reused meanwhile: the GET began again at the index

  void add(const GetCounts& other) {
    probes.add(other.probes);
    values.add(other.values);
    torn += other.torn;
    moved += other.moved;
  }
};

// Accesses of stores that are emulated (Kalia et al., SIGCOMM 2014, sections 5.1.1 and 5.1.2): READs of the sizes
// and in the order of the originals, at places that the key chooses, of memory that holds nothing.
class EmulatedGet;

// The server answers PUTs at once.
class EmulatedPuts {
 public:
  template <class N>
  bool put(N&, const lookups::KeyHash&, const std::byte*) {
    return true;
  }
};

class EmulatedAccess {
 public:
  using Get = EmulatedGet;
  using Puts = EmulatedPuts;

  // Percentage of GETs that find the key in the first, second and third bucket with Pilaf's optimal cuckoo hashing: 1.6
  // buckets on average, as section 5.1.1 reports; the distribution is assumed.
  static constexpr std::array<std::uint32_t, 3> kPilafProbes = {55, 30, 15};
  static constexpr std::uint32_t kPilafBucket = 32;  // bytes
  static constexpr std::uint32_t kFarmNeighbourhood = 6;
  static constexpr std::uint32_t kFarmPointer = 8;  // bytes; the paper does not give it

  static EmulatedAccess pilaf(std::uint64_t keys, std::uint32_t value_bytes) {
    return {kPilafProbes, (4 * keys + 2) / 3, kPilafBucket, kPilafBucket, keys, value_bytes};
  }
  static EmulatedAccess farm(std::uint64_t keys, std::uint32_t value_bytes) {
    const std::uint32_t slot = kStoreKeyBytes + value_bytes;
    return {{100, 0, 0}, keys, slot, kFarmNeighbourhood * slot, 0, value_bytes};
  }
  static EmulatedAccess farm_var(std::uint64_t keys, std::uint32_t value_bytes) {
    const std::uint32_t slot = kStoreKeyBytes + kFarmPointer;
    return {{100, 0, 0}, keys, slot, kFarmNeighbourhood * slot, keys, value_bytes};
  }

  std::uint64_t region_bytes() const { return values_at() + values_ * value_bytes_; }
  void fill(std::span<std::byte>, const TableContents&) const {}
  std::uint32_t largest_read() const { return std::max(probe_bytes_, value_bytes_); }

  bool values_apart() const { return values_ > 0; }
  std::uint32_t probes(std::uint32_t percent) const {
    return percent < probes_[0] ? 1 : percent < probes_[0] + probes_[1] ? 2 : 3;
  }
  double mean_probes() const { return (probes_[0] + 2 * probes_[1] + 3 * probes_[2]) / 100.0; }
  RegionPiece probe(std::uint64_t random) const { return {scaled(random, slots_) * slot_bytes_, probe_bytes_}; }
  RegionPiece value(std::uint64_t random) const {
    return {values_at() + scaled(random, values_) * value_bytes_, value_bytes_};
  }

  // For the model: bytes from a slot to the next, of a READ of the index, and where the values begin.
  std::uint32_t slot_bytes() const { return slot_bytes_; }
  std::uint32_t probe_bytes() const { return probe_bytes_; }
  std::uint64_t values_at() const { return round_up(slots_ * slot_bytes_ + probe_bytes_, kCacheLine.value); }

 private:
  EmulatedAccess(std::array<std::uint32_t, 3> probes, std::uint64_t slots, std::uint32_t slot_bytes,
                 std::uint32_t probe_bytes, std::uint64_t values, std::uint32_t value_bytes)
      : probes_(probes),
        slots_(slots),
        values_(values),
        slot_bytes_(slot_bytes),
        probe_bytes_(probe_bytes),
        value_bytes_(value_bytes) {}
  static std::uint64_t scaled(std::uint64_t random, std::uint64_t count) { return (random >> 32) * count >> 32; }

  std::array<std::uint32_t, 3> probes_;  // of 100 GETs
  std::uint64_t slots_, values_;
  std::uint32_t slot_bytes_, probe_bytes_, value_bytes_;
};

class EmulatedGet {
 public:
  RegionPiece begin(const EmulatedAccess& access, const lookups::KeyHash& key) {
    random_ = mix(key.low + uses_++ * kMixStep);
    left_ = access.probes(static_cast<std::uint32_t>((random_ & 0xffffffff) * 100 >> 32));
    return access.probe(random_);
  }

  GetStep take(const EmulatedAccess& access, const std::byte*, RegionPiece& piece, GetCounts& counts) {
    if (left_ == 0) {
      counts.values.count(piece);
      return GetStep::unchecked();
    }
    counts.probes.count(piece);
    random_ = mix(random_);
    if (--left_ == 0 && !access.values_apart()) return GetStep::unchecked();
    piece = left_ > 0 ? access.probe(random_) : access.value(random_);
    return GetStep::on();
  }

 private:
  std::uint64_t random_ = 0;
  std::uint64_t uses_ = 0;
  std::uint32_t left_ = 0;  // READs of the index to do
};

}  // namespace verbscope
