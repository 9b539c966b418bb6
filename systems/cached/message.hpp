// The protocol of the cached store (after Kalia et al., ATC 2016, section 5.2.2). Requests and responses are datagrams
// with an immediate.
//
// A request ends with [length, 2 bytes][hash of the key, 16]. A PUT has value and version before that, and the value's
// length; a GET has a length of 0, preceded by the version that its client has cached, if any. The immediate names
// client and request (tag_of). A client numbers its requests to each of the server's threads from 0 on, and a thread
// executes them in this order. It drops a request that arrives early because one before it was lost; the client resends
// it after that one. It answers a request again that was executed before, a PUT without executing it.
//
// A version names the PUT that wrote it (StoreVersion): no two values of a key have the same. So a client can compute
// the version of its own PUT, and equal versions have equal values.
//
// A response is header-only ("confirmed") if the version of a GET is current, and for a PUT. Otherwise it is value and
// version, or kStatusBytes if a GET finds nothing. Its immediate names thread and request.
//
// With small keys there are only GETs. A request is header-only: its immediate is table and key, which the response's
// immediate repeats. Requests have no numbers: a response answers the client's oldest request for this key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lookups/mica_store.hpp"
#include "systems/requests/peers.hpp"

namespace verbscope::cached {

using lookups::KeyHash;

inline constexpr std::uint32_t kVersionBytes = 8;
inline constexpr std::uint32_t kLengthBytes = 2;
inline constexpr std::uint32_t kHashBytes = 16;

// The entry of a key in the server's cache, and a response: value, then version.
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
inline constexpr std::uint64_t kMaxSmallKeys = std::uint64_t{1} << 24;
inline constexpr std::uint32_t kTable = 1;
constexpr std::uint32_t row_of(std::uint64_t key) {
  return kTable << 24 | static_cast<std::uint32_t>(key);
}
constexpr std::uint32_t table_in(std::uint32_t row) {
  return row >> 24;
}
constexpr std::uint64_t key_in(std::uint32_t row) {
  return row & (kMaxSmallKeys - 1);
}

}  // namespace verbscope::cached
