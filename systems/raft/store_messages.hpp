// What clients of the replicated store ask for, and its answers. Both ends have the same byte order. An entry of the
// log is a request as it arrived.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/hash.hpp"
#include "lookups/mica_store.hpp"

namespace verbscope {

using lookups::KeyHash;

constexpr std::size_t kStoreValue = 64;  // bytes
using StoreValue = std::array<std::byte, kStoreValue>;

enum class StoreOp : std::uint64_t {
  open = 1,  // a session, in which PUTs are numbered from 1
  put,
  get,
};

// The value is sent with a PUT only.
struct StoreRequest {
  StoreOp op = StoreOp::open;
  std::uint64_t session = 0;
  std::uint64_t number = 0;  // of the PUT in its session; a PUT that is asked for again has the same
  KeyHash key{};
  StoreValue value{};

  static constexpr std::size_t bytes(StoreOp op) {
    return sizeof(StoreRequest) - (op == StoreOp::put ? 0 : kStoreValue);
  }
};
static_assert(sizeof(StoreRequest) == 40 + kStoreValue);

enum class StoreStatus : std::uint8_t {
  done,
  not_leader,  // nothing was done
  unknown,     // a PUT that may still be applied, or not: ask for it again
  no_space,    // nothing was done
  expired,     // the session is unknown: whether an earlier copy of the PUT was applied is not known
};

// The value follows a GET that has found one.
struct StoreAnswer {
  StoreStatus status = StoreStatus::done;
  std::uint8_t leader = 0;  // number of the replica, if known
  bool found = false;
  std::uint8_t unused[5] = {};
  std::uint64_t session = 0;  // that was opened
  StoreValue value{};

  std::size_t bytes() const { return sizeof(StoreAnswer) - (found ? 0 : kStoreValue); }
};
static_assert(sizeof(StoreAnswer) == 16 + kStoreValue);

// The key with this number.
constexpr KeyHash store_key(std::uint64_t number) {
  const std::uint64_t low = mix(number);
  return {low, mix(low) | 1};
}

}  // namespace verbscope
