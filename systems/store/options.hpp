// The options of kv_rate that its stores share.
#pragma once

#include <cstdint>
#include <optional>

#include "common/units.hpp"

namespace verbscope {

enum class StoreKind : std::uint8_t { herd, cached, pilaf, farm, farm_var };

// Bytes of a response without a value. One byte and not none, as in HERD's code, because mlx4 posts by BlueFlame only
// requests with inline bytes. A value is longer.
inline constexpr std::uint32_t kStatusBytes = 1;
inline constexpr std::uint32_t kMinStoreValue = 4;     // bytes
inline constexpr std::uint32_t kMaxStoreValue = 1000;  // bytes, that of HERD
inline constexpr std::uint32_t kMaxAccesses = 16;      // of a request that is echoed

// How a server hides the latency of memory (docs/systems.md).
enum class Prefetching : std::uint8_t { off, pipeline, batch };

struct StoreOptions {
  StoreKind store = StoreKind::herd;
  std::uint64_t keys = std::uint64_t{1} << 18;  // below 2^32
  std::uint32_t put_percent = 5;
  std::optional<double> zipf{};  // exponent of the popularity of keys; none: all are equally popular
  std::uint32_t window = 4;      // outstanding requests of a client thread
  Picos retry_after{0};          // a request without a response is sent again after this; 0: never
  bool emulate = false;          // the server answers at once, without a store
  // Of --store cached.
  std::uint32_t cached_share = 100;  // percent of the keys whose values a client caches
  bool small_keys = false;           // a request is only an immediate
  // Of a server's thread.
  bool batching = false;
  std::uint32_t max_batch = 32;
  std::optional<Prefetching> prefetch{};
  bool requests_by_send = false;
  std::optional<std::uint64_t> buckets{};  // of the index
  std::optional<std::uint64_t> log{};      // bytes
  // An echo in place of HERD's store: places of memory read per request.
  std::optional<std::uint32_t> accesses{};
  // This process plays every role: simulated.
  bool one_process = false;
};

}  // namespace verbscope
