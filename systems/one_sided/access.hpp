// How a client gets at the items of a store without the server's CPU. An access has
// - `Get`, one GET under way: `begin(access, hash)` says what to READ first, `take(access, got, piece, counts)` what to
// READ
//   next, or that it has ended;
// - `Puts`, what one thread of the server does for PUTs: `put(node, hash, value)`, false for a key that is not there;
// - `region_bytes()`, `fill(region, contents)`, `largest_read()`.
// Data path, but for the filling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// What the GETs of a client needed.
struct GetCounts {
  std::uint64_t probes = 0;  // READs of the index: buckets, neighbourhoods
  std::uint64_t values = 0;  // READs of values that do not lie in the index
  std::uint64_t torn = 0;    // READ while the server wrote them, and READ again
  std::uint64_t moved = 0;   // values whose place another had got meanwhile: begun again at the index

  void add(const GetCounts& other) {
    probes += other.probes;
    values += other.values;
    torn += other.torn;
    moved += other.moved;
  }
};

}  // namespace verbscope
