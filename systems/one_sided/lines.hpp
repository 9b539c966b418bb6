// Objects that clients READ while the server's CPU writes them, after FaRM: each cache line of an object begins with
// its version, so that a READ, which sees each line as a whole but the lines at different times, knows whether it has
// one version of all of them.
//
// A version is odd while its line is written, and goes up by two with each write. The version of the first line is also
// the lock of the object: who makes it odd may write. A line's bytes change while its version is odd alone, so that
// lines whose versions are even and the same are of one write.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "machine/node.hpp"

namespace verbscope {

inline constexpr std::uint64_t kObjectLine = 64;
inline constexpr std::uint64_t kLineBytes = kObjectLine - sizeof(std::uint64_t);  // bytes of the object in a line

constexpr std::uint64_t lines_of(std::uint64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes;
}

inline std::atomic_ref<std::uint64_t> version_of(std::byte* line) {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(line));
}

// Copies an object of `bytes` bytes from its lines, of which this is a copy that nobody writes, to where it may begin
// at the same place. Returns its version, or nothing when the lines are not of one version.
inline std::optional<std::uint64_t> read_object(const std::byte* lines, std::uint64_t bytes, std::byte* object) {
  std::uint64_t version = 0;
  bool whole = true;
  for (std::uint64_t line = 0, at = 0; at < bytes; ++line, at += kLineBytes) {
    std::uint64_t own = 0;
    std::memcpy(&own, lines + line * kObjectLine, sizeof own);
    if (line == 0) version = own;
    whole = whole && own == version && own % 2 == 0;
    std::memmove(object + at, lines + line * kObjectLine + sizeof own, std::min(kLineBytes, bytes - at));
  }
  return whole ? std::optional(version) : std::nullopt;
}

// Writes an object nobody READs yet.
inline void lay_object(std::byte* lines, std::uint64_t bytes, const std::byte* object) {
  for (std::uint64_t line = 0, at = 0; at < bytes; ++line, at += kLineBytes) {
    std::memset(lines + line * kObjectLine, 0, sizeof(std::uint64_t));
    std::memcpy(lines + line * kObjectLine + sizeof(std::uint64_t), object + at, std::min(kLineBytes, bytes - at));
  }
}

// Writes an object that others may READ and write at the same time, but for its first `kept` bytes, less than a line,
// which stay as they are. Between lines whatever else happens may happen; on a host it does anyhow.
template <Node N>
void write_object(N& node, std::byte* lines, std::uint64_t kept, const std::byte* rest, std::uint64_t rest_bytes) {
  constexpr Nanos kRetry = std::chrono::nanoseconds(50);  // between looks at a lock that another thread has
  const std::uint64_t bytes = kept + rest_bytes;
  for (std::uint64_t line = 0; line < lines_of(bytes); ++line) node.prefetch(lines + line * kObjectLine);
  node.load(lines);
  std::uint64_t version = version_of(lines).load(std::memory_order_relaxed);
  while (version % 2 != 0 || !version_of(lines).compare_exchange_strong(version, version + 1, std::memory_order_acquire,
                                                                        std::memory_order_relaxed)) {
    if (version % 2 == 0) continue;
    node.poll_memory();
    node.idle_until(node.now() + kRetry);
    version = version_of(lines).load(std::memory_order_relaxed);
  }
  for (std::uint64_t line = 0, at = 0; at < bytes; ++line, at += kLineBytes) {
    std::byte* const begin = lines + line * kObjectLine;
    if (line > 0) {
      node.load(begin);
      node.poll_memory(0);
      version_of(begin).store(version + 1, std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_release);
    const std::uint64_t first = line == 0 ? kept : 0;
    std::memcpy(begin + sizeof version + first, rest + (at + first - kept), std::min(kLineBytes, bytes - at) - first);
    if (line > 0) version_of(begin).store(version + 2, std::memory_order_release);
  }
  version_of(lines).store(version + 2, std::memory_order_release);
}

}  // namespace verbscope
