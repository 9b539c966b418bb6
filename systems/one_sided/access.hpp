// How a client gets at the items of a store without the server's CPU. An access has
// - `Get`, one GET under way: `begin(access, hash)` says what to READ first, `take(access, got, piece, counts)` what to
// READ
//   next, or that it has ended;
// - `Puts`, what one thread of the server does for PUTs: `put(node, hash, value)`, false for a key that is not there;
// - `region_bytes()`, `fill(region, contents)`, `largest_read()`.
// Data path, but for the filling.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>

#include "lookups/mica_store.hpp"

namespace verbscope {

inline constexpr std::uint32_t kStoreKeyBytes = sizeof(lookups::KeyHash);

// What a table holds before the run: the hash of key number i, and its value.
struct TableContents {
  std::uint64_t keys = 0;
  std::function<lookups::KeyHash(std::uint64_t)> hash_of;
  std::function<void(std::uint64_t, std::byte*)> fill_value;
};

// A piece of the server's region to READ.
struct RegionPiece {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
};

// How a GET goes on: it READs the piece, which may be the same again; it has the value, `value` bytes from the
// beginning of what was READ, or nobody's bytes (of an emulation); or there is no such key.
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

// What the GETs of a client needed.
struct GetCounts {
  ReadCounts probes;        // of the index: buckets, neighbourhoods
  ReadCounts values;        // of values that do not lie in the index
  std::uint64_t torn = 0;   // READ while the server wrote them, and READ again
  std::uint64_t moved = 0;  // values whose place another had got meanwhile: begun again at the index

  void add(const GetCounts& other) {
    probes.add(other.probes);
    values.add(other.values);
    torn += other.torn;
    moved += other.moved;
  }
};

}  // namespace verbscope
