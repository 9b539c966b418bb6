// What the clients of a key-value store ask for: keys and their hashes, and which operation of a client is what. All of
// it is a function of the seed, so that whoever reads a value can tell whether the operation that it names was a PUT
// of that key.
#pragma once

#include <cstdint>
#include <optional>

#include "common/hash.hpp"
#include "lookups/mica_store.hpp"
#include "systems/store/options.hpp"
#include "systems/store/zipf.hpp"

namespace verbscope {

using lookups::KeyHash;

// One operation of a client.
struct StoreOp {
  std::uint64_t key = 0;  // its number, from 0 on
  bool put = false;
  bool operator==(const StoreOp&) const = default;
};

class StoreWorkload {
 public:
  StoreWorkload(const StoreOptions& options, std::uint64_t seed)
      : seed_(mix(seed)), keys_(options.keys), put_percent_(options.put_percent) {
    if (options.zipf) zipf_.emplace(options.keys, *options.zipf);
  }

  // Operation `number`, from 0 on, of client thread `client` among all. Data path.
  StoreOp op(std::uint32_t client, std::uint64_t number) const {
    const std::uint64_t random = mix(mix(seed_ + client) + number * kMixStep);
    StoreOp op;
    op.put = (random & 0xffffffff) * 100 >> 32 < put_percent_;
    op.key = zipf_ ? zipf_->rank(mix(random)) : (random >> 32) * keys_ >> 32;
    return op;
  }

  // The hash of a key. Neither half is 0, nor is the last byte in memory, by which servers tell a request.
  KeyHash hash(std::uint64_t key) const {
    const std::uint64_t low = mix(seed_ ^ key);
    const std::uint64_t high = mix(low ^ key);
    return {low != 0 ? low : 1, high >> 56 != 0 ? high : high | std::uint64_t{1} << 56};
  }

  std::uint64_t keys() const { return keys_; }

 private:
  std::uint64_t seed_;
  std::uint64_t keys_;
  std::uint32_t put_percent_;
  std::optional<Zipf> zipf_;
};

// The thread of the server, of `threads`, that owns a key.
constexpr std::uint32_t owner_of(const KeyHash& hash, std::uint32_t threads) {
  return hash.server() % threads;
}

}  // namespace verbscope
