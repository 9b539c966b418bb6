// An echo in the place of HERD's store: for each request the server's thread reads a number of places of its memory,
// each of which names the next, and sends the request's value back (SIGCOMM 2014, section 4.1.1, Figure 7). The first
// four bytes of a response are masked with the place at which the walk has ended, which a client can tell without the
// memory: so it sees that every place was read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lookups/chain.hpp"
#include "lookups/mica_store.hpp"

namespace verbscope::herd {

// What both ends know of the walks.
struct EchoRule {
  std::uint64_t seed = 0;      // of the chain
  std::uint64_t places = 1;    // of it, a power of two up to 2^32
  std::uint32_t accesses = 0;  // of a request

  std::uint32_t start(const lookups::KeyHash& key) const {
    return key.bucket() & static_cast<std::uint32_t>(places - 1);
  }
  // Where the walk of a request with that key ends.
  std::uint32_t end(const lookups::KeyHash& key) const {
    std::uint32_t place = start(key);
    for (std::uint32_t step = 0; step < accesses; ++step) {
      place = (lookups::Chain::content(seed, place) + step) & static_cast<std::uint32_t>(places - 1);
    }
    return place;
  }
};

// Masks a response whose request's walk has ended at `place`, or takes the mask off.
inline void mask_echo(std::byte* response, std::uint32_t place) {
  std::uint32_t first = 0;
  std::memcpy(&first, response, sizeof first);
  first ^= place;
  std::memcpy(response, &first, sizeof first);
}

// Whether `response` is the right one to a request with that key and value, both of so many bytes, four at least.
inline bool is_echo(const EchoRule& rule, const lookups::KeyHash& key, const std::byte* value,
                    const std::byte* response, std::size_t bytes) {
  constexpr std::size_t kMasked = sizeof(std::uint32_t);
  std::array<std::byte, kMasked> first;
  std::memcpy(first.data(), response, kMasked);
  mask_echo(first.data(), rule.end(key));
  return std::memcmp(first.data(), value, kMasked) == 0 &&
         std::memcmp(response + kMasked, value + kMasked, bytes - kMasked) == 0;
}

}  // namespace verbscope::herd
