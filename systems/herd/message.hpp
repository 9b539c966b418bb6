// A request of HERD as its two ends agree on it (systems/requests/request_slots.hpp says how it gets to the server),
// and the echo that may take the store's place.
//
// A request ends with the 16-byte hash of its key. A GET is the hash alone; a PUT is value, length (2 bytes, not 0) and
// hash. The last byte of a hash is not 0. In an empty slot length and hash are 0, so that a GET is read with a length
// of 0.
//
// An echo (SIGCOMM 2014, section 4.1.1, Figure 7): for each request the server's thread reads several places of its
// memory, each of which names the next, and sends the request's value back. It masks the first four bytes of the
// response with the place at which the walk ended. A client computes that place without the memory, and so checks that
// every place was read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lookups/chain.hpp"
#include "lookups/mica_store.hpp"

namespace verbscope::herd {

using lookups::KeyHash;

inline constexpr std::uint64_t kKeyBytes = 16;
inline constexpr std::uint64_t kLengthBytes = 2;

// Bytes of a request.
inline constexpr std::uint64_t kGetBytes = kKeyBytes;
constexpr std::uint64_t put_bytes(std::uint64_t value) {
  return value + kLengthBytes + kKeyBytes;
}

// Writes a request so that it ends at `end`, and returns where it begins. `fill(bytes)` writes the value of a PUT.
// The length of 0 before a GET is sent only in a retry.
inline std::byte* write_get(std::byte* end, const KeyHash& key) {
  std::byte* const begin = end - kGetBytes;
  std::memset(begin - kLengthBytes, 0, kLengthBytes);
  std::memcpy(begin, &key, sizeof key);
  return begin;
}
template <class Fill>
inline std::byte* write_put(std::byte* end, const KeyHash& key, std::uint32_t value, Fill&& fill) {
  std::byte* const begin = end - put_bytes(value);
  const auto length = static_cast<std::uint16_t>(value);
  fill(begin);
  std::memcpy(begin + value, &length, sizeof length);
  std::memcpy(end - kKeyBytes, &key, sizeof key);
  return begin;
}

// The length of the value of a request whose hash ends at `end`; 0: a GET.
inline std::uint16_t length_before(const std::byte* end) {
  std::uint16_t length = 0;
  std::memcpy(&length, end - kKeyBytes - kLengthBytes, sizeof length);
  return length;
}

// The walks of an echo.
struct EchoRule {
  std::uint64_t seed = 0;      // of the chain
  std::uint64_t places = 1;    // in the chain, a power of two up to 2^32
  std::uint32_t accesses = 0;  // per request

  std::uint32_t start(const KeyHash& key) const { return key.bucket() & static_cast<std::uint32_t>(places - 1); }
  // Where the walk of a request with this key ends.
  std::uint32_t end(const KeyHash& key) const {
    std::uint32_t place = start(key);
    for (std::uint32_t step = 0; step < accesses; ++step) {
      place = (lookups::Chain::content(seed, place) + step) & static_cast<std::uint32_t>(places - 1);
    }
    return place;
  }
};

// Masks a response whose request's walk ended at `place`, or removes the mask.
inline void mask_echo(std::byte* response, std::uint32_t place) {
  std::uint32_t first = 0;
  std::memcpy(&first, response, sizeof first);
  first ^= place;
  std::memcpy(response, &first, sizeof first);
}

// Whether `response` is right for a request with that key and value. Both have `bytes` bytes, at least four.
inline bool is_echo(const EchoRule& rule, const KeyHash& key, const std::byte* value, const std::byte* response,
                    std::size_t bytes) {
  constexpr std::size_t kMasked = sizeof(std::uint32_t);
  std::array<std::byte, kMasked> first;
  std::memcpy(first.data(), response, kMasked);
  mask_echo(first.data(), rule.end(key));
  return std::memcmp(first.data(), value, kMasked) == 0 &&
         std::memcmp(response + kMasked, value + kMasked, bytes - kMasked) == 0;
}

}  // namespace verbscope::herd
