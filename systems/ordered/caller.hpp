// The requests of a client thread of ordered_kv, and the correct answers. Only one thread writes each key, so it knows
// which versions of the key a reader may see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "microbench/loop/choice.hpp"
#include "systems/ordered/keys.hpp"
#include "systems/rpc_rate/rpc_load.hpp"

namespace verbscope::ordered {

inline constexpr std::uint8_t kGet = kUsualRequest, kScan = kSlowRequest, kPut = 2;

struct Request {
  std::uint64_t tag = 0;
  std::uint64_t key = 0;     // SCAN: where it begins
  std::uint64_t value = 0;   // PUT
  std::uint64_t length = 0;  // SCAN: keys
};
struct Response {
  std::uint64_t tag = 0;
  std::uint64_t count = 0;             // keys that were found
  std::uint64_t keys = 0, values = 0;  // their sum, and that of their values
};
inline constexpr std::uint32_t kMessageBytes = sizeof(Request);
static_assert(sizeof(Response) == kMessageBytes);

// Versions of a key are below this.
inline constexpr std::uint64_t kVersions = std::uint64_t{1} << 32;

struct Mix {
  std::uint32_t gets = 99, scans = 1, puts = 0;  // in percent
  std::uint32_t scan_length = 128;               // keys
};

struct Asked {
  std::uint64_t place = 0;  // of the key in the table
  std::uint64_t least = 0;  // the sum of the versions that are asked for is not below it
  std::uint8_t kind = kGet;
};

class Caller {
 public:
  // The thread of this rank among `writers` threads. With PUTs there are as many keys at least.
  struct Place {
    std::uint64_t writers = 1, rank = 0;
  };
  Caller(std::shared_ptr<const KeyTable> keys, const Mix& mix, const Place& place, std::uint64_t seed);

  Request ask(std::uint64_t tag, Asked& asked);
  bool good(const Asked& asked, std::uint64_t tag, const Response& response);

 private:
  // The versions of a key that this thread writes.
  struct Versions {
    std::uint32_t sent = 0, stored = 0;
  };

  std::uint64_t least_versions(std::uint64_t place, std::uint64_t count) const;
  std::uint64_t most_versions(std::uint64_t place, std::uint64_t count) const;
  std::uint8_t draw(Asked& asked);

  std::shared_ptr<const KeyTable> keys_;
  Mix mix_;
  Place own_place_;
  std::vector<Versions> own_;  // key i of this thread is at place i * writers + rank of the table; empty without PUTs
  Choice kinds_, places_;
};

}  // namespace verbscope::ordered
