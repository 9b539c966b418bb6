// The two ends of the cached store agree on this (after Kalia et al., ATC 2016, section 5.2.2). Requests and responses
// are datagrams with an immediate.
//
// A request ends with [length, 2 bytes][hash of the key, 16]. A PUT has value and version before that, and the value's
// length; a GET has a length of 0, and before it the version that its client keeps, if it does. The immediate names
// client and request (tag_of). A client numbers its requests to each of the server's threads from 0 on, and a thread
// executes them in this order: one that comes early, as one before it was lost, is dropped, and asked for again behind
// that one; one that was executed before is answered again, a PUT without being executed.
//
// A version names the PUT that wrote it (StoreVersion): no two values of a key have the same. So a client knows the
// version of its own PUT, and a version that is the server's has the server's value.
//
// A response is headers alone, "confirmed", where the version of a GET is current and for a PUT; else value and
// version; or kStatusBytes where a GET finds nothing. Its immediate names thread and request.
//
// With small keys there are GETs alone. A request is headers alone: its immediate is table and key, which the
// response's immediate repeats. Any request of the client for this key is answered by it, and nothing is numbered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lookups/mica_store.hpp"
#include "systems/rpc/peers.hpp"

namespace verbscope::cached {

using lookups::KeyHash;

inline constexpr std::uint32_t kVersionBytes = 8;
inline constexpr std::uint32_t kLengthBytes = 2;
inline constexpr std::uint32_t kHashBytes = 16;

// What the server's cache has under a key, and a response: value, then version.
constexpr std::uint32_t item_bytes(std::uint32_t value) {
  return value + kVersionBytes;
}
// Bytes of a request.
inline constexpr std::uint32_t kGetBytes = kLengthBytes + kHashBytes;
inline constexpr std::uint32_t kKnownGetBytes = kVersionBytes + kGetBytes;
constexpr std::uint32_t put_bytes(std::uint32_t value) {
  return item_bytes(value) + kGetBytes;
}

// Writes the end of a request, which ends at `end`. `length`: of a PUT's value; 0: a GET.
inline void write_request(std::byte* end, const KeyHash& key, std::uint32_t length) {
  const auto written = static_cast<std::uint16_t>(length);
  std::memcpy(end - kGetBytes, &written, sizeof written);
  std::memcpy(end - kHashBytes, &key, sizeof key);
}
inline std::uint32_t length_of(const std::byte* end) {
  std::uint16_t length = 0;
  std::memcpy(&length, end - kGetBytes, sizeof length);
  return length;
}
inline KeyHash key_of(const std::byte* end) {
  KeyHash key;
  std::memcpy(&key, end - kHashBytes, sizeof key);
  return key;
}

// Small keys: one byte of table, which is always the same, and three of the key.
inline constexpr std::uint64_t kMostSmallKeys = std::uint64_t{1} << 24;
inline constexpr std::uint32_t kTable = 1;
constexpr std::uint32_t row_of(std::uint64_t key) {
  return kTable << 24 | static_cast<std::uint32_t>(key);
}
constexpr std::uint32_t table_in(std::uint32_t row) {
  return row >> 24;
}
constexpr std::uint64_t key_in(std::uint32_t row) {
  return row & (kMostSmallKeys - 1);
}

}  // namespace verbscope::cached
