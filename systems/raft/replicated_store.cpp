#include "systems/raft/replicated_store.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace verbscope {

namespace {

using lookups::MicaStore;

// The head of a snapshot. Sessions follow, ordered by number, then keys with their values.
struct SnapshotHead {
  std::uint64_t applied = 0;
  std::uint64_t last_session = 0;
  std::uint64_t sessions = 0;
  std::uint64_t keys = 0;
};
struct SnapshotSession {
  std::uint64_t number = 0;
  std::uint64_t last = 0;
  std::uint64_t used = 0;
};
struct SnapshotItem {
  KeyHash key{};
  StoreValue value{};
};

template <class T>
std::byte* write(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof value);
  return to + sizeof value;
}
template <class T>
T read(std::span<const std::byte>& from) {
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  from = from.subspan(sizeof value);
  return value;
}

SnapshotItem item_of(const KeyHash& key, std::span<const std::byte> value) {
  SnapshotItem item{.key = key};
  std::ranges::copy(value, item.value.begin());
  return item;
}

}  // namespace

ReplicatedStore::ReplicatedStore(std::uint64_t keys) : memory_keys_(keys) {
  clear();
}

// Two keys per bucket of eight slots: of a million keys, a few hundred share a tag or a full bucket, and go to the map.
void ReplicatedStore::clear() {
  const std::uint64_t buckets = std::bit_ceil(std::max<std::uint64_t>(memory_keys_ / 2, 1));
  const std::uint64_t log = std::bit_ceil(memory_keys_ * MicaStore::item_bytes(kStoreValue) + 2 * MicaStore::kMaxItem);
  store_.emplace(buckets, Bytes(log), PageSize::on_demand);
  rest_.clear();
  sessions_.clear();
  last_session_ = applied_ = 0;
}

StoreAnswer ReplicatedStore::apply(std::span<const std::byte> bytes) {
  StoreRequest request;
  if (bytes.size() < StoreRequest::bytes(StoreOp::open)) return {};
  std::memcpy(&request, bytes.data(), std::min(bytes.size(), sizeof request));
  ++applied_;
  if (request.op == StoreOp::open) return {.session = open_session()};
  if (request.op != StoreOp::put || bytes.size() != sizeof request || request.key.none()) return {};
  const auto found = sessions_.find(request.session);
  if (found == sessions_.end()) return {.status = StoreStatus::expired};
  Session& session = found->second;
  session.used = applied_;
  if (request.number <= session.last && !ignore_numbers_) return {};
  session.last = request.number;
  put(request.key, request.value);
  return {};
}

void ReplicatedStore::put(const KeyHash& key, std::span<const std::byte> value) {
  if (!rest_.empty()) {
    if (const auto found = rest_.find(key); found != rest_.end()) {
      std::ranges::copy(value, found->second.begin());
      return;
    }
  }
  if (store_->has_room(key, value.size())) {
    store_->put(key, value);
  } else {
    std::ranges::copy(value, rest_[key].begin());
  }
}

const std::byte* ReplicatedStore::get(const KeyHash& key) {
  if (!rest_.empty()) {
    if (const auto found = rest_.find(key); found != rest_.end()) return found->second.data();
  }
  const std::byte* const item = store_->hit(key, store_->find(key));
  return item != nullptr ? MicaStore::value_in(item).data() : nullptr;
}

std::uint64_t ReplicatedStore::open_session() {
  if (sessions_.size() >= kMostSessions) {
    sessions_.erase(std::ranges::min_element(sessions_, {}, [](const auto& entry) { return entry.second.used; }));
  }
  sessions_[++last_session_] = {.last = 0, .used = applied_};
  return last_session_;
}

std::size_t ReplicatedStore::snapshot_bytes() const {
  return sizeof(SnapshotHead) + sessions_.size() * sizeof(SnapshotSession) + keys() * sizeof(SnapshotItem);
}

void ReplicatedStore::snapshot(std::byte* to) const {
  to = write(to, SnapshotHead{applied_, last_session_, sessions_.size(), keys()});
  std::vector<SnapshotSession> sessions;
  for (const auto& [number, session] : sessions_) sessions.push_back({number, session.last, session.used});
  std::ranges::sort(sessions, {}, &SnapshotSession::number);
  for (const SnapshotSession& session : sessions) to = write(to, session);
  store_->for_each(
      [&to](const KeyHash& key, std::span<const std::byte> value) { to = write(to, item_of(key, value)); });
  for (const auto& [key, value] : rest_) to = write(to, item_of(key, value));
}

bool ReplicatedStore::restore(std::span<const std::byte> from) {
  clear();
  if (from.size() < sizeof(SnapshotHead)) return false;
  const auto head = read<SnapshotHead>(from);
  if (head.sessions > from.size() / sizeof(SnapshotSession)) return false;
  const std::size_t items = from.size() - head.sessions * sizeof(SnapshotSession);
  if (items % sizeof(SnapshotItem) != 0 || items / sizeof(SnapshotItem) != head.keys) return false;
  for (std::uint64_t i = 0; i < head.sessions; ++i) {
    const auto session = read<SnapshotSession>(from);
    sessions_[session.number] = {session.last, session.used};
  }
  for (std::uint64_t i = 0; i < head.keys; ++i) {
    const auto item = read<SnapshotItem>(from);
    put(item.key, item.value);
  }
  applied_ = head.applied;
  last_session_ = head.last_session;
  return true;
}

}  // namespace verbscope
