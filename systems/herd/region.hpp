// The two ends of HERD agree on this (Kalia, Kaminsky and Andersen, "Using RDMA Efficiently for Key-Value Services",
// SIGCOMM 2014, section 4.2): where a client writes its requests in the server's memory, and what they look like.
//
// A request ends where its slot ends, with the 16-byte hash of its key. A GET is the hash alone; a PUT is value, length
// (2 bytes, not 0) and hash. The last byte of a hash is not 0, and a server's thread zeroes length and end of the hash
// when it takes a request: a last byte that is not 0 is a new request, whose bytes before it are there as well, where
// the adapter writes from left to right. Adapters write whole lines; soft-RoCE copies in words and single bytes, so
// that a part of the last word can be seen without the rest.
//
// A client numbers its requests to each of the server's threads from 0 on; number r lies in slot r mod W, and a thread
// looks at the slot of the next alone. What is lost, or whose response is, is written again into the client's retry
// slot r mod W, with its number behind it, and the client then rings the thread's bell. Requests of a client arrive in
// the order in which they were written: when the retry is seen, the request itself is there or never will be. A number
// that was executed before is not executed again when it is a PUT.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/units.hpp"
#include "lookups/mica_store.hpp"
#include "microbench/loop/send_queue.hpp"
#include "systems/rpc/tags.hpp"

namespace verbscope::herd {

using lookups::KeyHash;

inline constexpr std::uint64_t kLine = 64;  // bytes: no two peers write to one
inline constexpr std::uint64_t kKeyBytes = 16;
inline constexpr std::uint64_t kLengthBytes = 2;
inline constexpr std::uint64_t kWord = 8;  // bytes of the number in a retry slot

// Bytes of a request.
inline constexpr std::uint64_t kGetBytes = kKeyBytes;
constexpr std::uint64_t put_bytes(std::uint64_t value) {
  return value + kLengthBytes + kKeyBytes;
}

// The server's memory: all slots, all retry slots, all bells.
struct RequestRegion {
  std::uint32_t servers = 1;  // threads
  std::uint32_t clients = 1;  // client threads of all machines
  std::uint32_t window = 1;   // slots of a client at each thread
  std::uint32_t value = 0;    // bytes

  std::uint64_t slot_bytes() const { return round_up(put_bytes(value), kLine); }
  std::uint64_t retry_bytes() const { return round_up(put_bytes(value) + kWord, kLine); }
  // The slot of request r of client c to thread s, by the formula of section 4.2.
  std::uint64_t slot_index(std::uint64_t s, std::uint64_t c, std::uint64_t r) const {
    return s * window * clients + c * window + r % window;
  }
  // Offsets of the first byte behind a slot, and of the word in the retry slot of the same place, behind its hash.
  std::uint64_t slot_end(std::uint64_t s, std::uint64_t c, std::uint64_t r) const {
    return (slot_index(s, c, r) + 1) * slot_bytes();
  }
  std::uint64_t retry_word(std::uint64_t s, std::uint64_t c, std::uint64_t r) const {
    return slots_bytes() + (slot_index(s, c, r) + 1) * retry_bytes() - kWord;
  }
  std::uint64_t bell(std::uint64_t s) const { return slots_bytes() + slots() * retry_bytes() + s * kLine; }

  // Thread s polls this part, and its bell.
  std::uint64_t polled_begin(std::uint64_t s) const { return slot_index(s, 0, 0) * slot_bytes(); }
  std::uint64_t polled_bytes() const { return std::uint64_t{clients} * window * slot_bytes(); }

  std::uint64_t slots() const { return std::uint64_t{servers} * clients * window; }
  std::uint64_t slots_bytes() const { return slots() * slot_bytes(); }
  std::uint64_t bytes() const { return bell(servers); }
};

// Writes a request so that it ends at `end`, and returns where it begins. `fill(bytes)` makes the value of a PUT.
// A GET has a length of 0 before it, which belongs to a retry alone.
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

// Whether a new request ends at `end`.
inline bool is_request(std::byte* end) {
  return load_word<std::uint8_t>(end - 1) != 0;
}

// The word of a retry slot: the request's number, and a mark in the byte that is written last.
inline constexpr std::uint64_t kRetryMark = std::uint64_t{1} << 63;
constexpr std::uint64_t retry_word(std::uint64_t number) {
  return number | kRetryMark;
}
constexpr bool is_retry(std::uint64_t word) {
  return (word & kRetryMark) != 0;
}
constexpr std::uint64_t retried(std::uint64_t word) {
  return word & ~kRetryMark;
}

}  // namespace verbscope::herd
