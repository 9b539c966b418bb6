// The state machine of the replicas: a store, and the sessions of clients, in which each PUT is applied once. All
// replicas apply the same requests in the same order, and have the same state then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "lookups/mica_store.hpp"
#include "systems/raft/store_messages.hpp"

namespace verbscope {

struct KeyHasher {
  std::size_t operator()(const KeyHash& key) const { return key.low; }
};

class ReplicatedStore {
 public:
  // With memory for `keys` keys. Further ones, and those that MicaStore would lose, are in a map.
  explicit ReplicatedStore(std::uint64_t keys);

  // Applies a request of the log. One that is not valid changes nothing.
  StoreAnswer apply(std::span<const std::byte> request);
  // Null: the key has no value.
  const std::byte* get(const KeyHash& key);

  std::size_t snapshot_bytes() const;
  void snapshot(std::byte* to) const;
  // Takes over the state of a snapshot. False: it is none, and the state is undefined.
  bool restore(std::span<const std::byte> from);

  std::uint64_t keys() const { return store_->counts().puts - store_->counts().overwritten + rest_.size(); }
  std::size_t sessions() const { return sessions_.size(); }

  // A test's: PUTs are applied as often as they are in the log.
  void ignore_numbers() { ignore_numbers_ = true; }

  // A new session takes the place of the one that was not used for the longest time.
  static constexpr std::size_t kMostSessions = 1 << 16;

 private:
  struct Session {
    std::uint64_t last = 0;  // number of its last PUT
    std::uint64_t used = 0;  // when, in applied requests
  };

  void clear();
  void put(const KeyHash& key, std::span<const std::byte> value);
  std::uint64_t open_session();

  const std::uint64_t memory_keys_;
  std::optional<lookups::MicaStore> store_;
  std::unordered_map<KeyHash, StoreValue, KeyHasher> rest_;
  std::unordered_map<std::uint64_t, Session> sessions_;
  std::uint64_t last_session_ = 0;
  std::uint64_t applied_ = 0;
  bool ignore_numbers_ = false;
};

}  // namespace verbscope
