#include "systems/store/client_oracle.hpp"

#include <algorithm>
#include <bit>

namespace verbscope {

namespace {

constexpr std::uint64_t kAllPlaces = std::uint64_t{1} << 20;  // of all oracles of a process: 32 MB
constexpr std::uint64_t kFewestPlaces = 64;
constexpr std::uint64_t kMaxWraps = 1024;  // of the number in a short version

}  // namespace

std::uint64_t oracle_places(std::uint64_t keys, std::uint32_t client_threads) {
  const std::uint64_t share = std::bit_floor(std::max(kFewestPlaces, kAllPlaces / std::max(1u, client_threads)));
  return std::min(share, std::max(kFewestPlaces, std::bit_ceil(2 * keys)));
}

StoreRequest ClientOracle::draw() {
  StoreRequest request;
  request.number = counts.asked++;
  const StoreOp op = workload_->op(client_, request.number);
  request.key = op.key;
  request.put = op.put;
  return request;
}

void ClientOracle::ask(StoreRequest& request, Picos now) {
  request.first = now;
  Place& place = place_of(request.key);
  if (request.put) {
    if (place.key != request.key) place = {.key = request.key};
    request.before = place.seen;
    return;
  }
  request.remembered = place.key == request.key && place.acked > 0;
  if (!request.remembered) return;
  request.acked = place.acked;
  request.before = place.before;
}

// Whether some client's operation wrote the version under the key; or it was there before the run.
bool ClientOracle::written(std::uint64_t key, StoreVersion version) const {
  if (version.initial()) return true;
  if (version.writer() >= clients_) return false;
  if (!values_.short_versions()) return workload_->op(version.writer(), version.number()) == StoreOp{key, true};
  for (std::uint64_t wraps = 0; wraps < kMaxWraps; ++wraps) {
    const std::uint64_t number = wraps << StoreValues::kShortNumberBits | version.number();
    if (workload_->op(version.writer(), number) == StoreOp{key, true}) return true;
  }
  return false;
}

// Whether an own version is older than the one that was acknowledged. The number of a short version wraps.
bool ClientOracle::before_acked(StoreVersion own, const StoreRequest& request) const {
  const std::uint64_t behind = request.acked - 1 - own.number();
  if (!values_.short_versions()) return static_cast<std::int64_t>(behind) > 0;
  constexpr std::uint64_t kNumbers = std::uint64_t{1} << StoreValues::kShortNumberBits;
  return behind % kNumbers != 0 && behind % kNumbers < kNumbers / 2;
}

void ClientOracle::hit(const StoreRequest& request, const std::byte* value, std::size_t length, Picos now,
                       bool measured) {
  end_get(request, now, measured);
  ++counts.checked;
  if (length != values_.bytes()) {
    ++counts.wrong;
    return;
  }
  const StoreReading reading = values_.read(value, request.key);
  const StoreVersion version = reading.first;
  if (!written(request.key, version) || !written(request.key, reading.last)) {
    ++counts.wrong;
    return;
  }
  if (!reading.whole) {
    ++counts.torn;
    return;
  }
  const bool own = !version.initial() && version.writer() == client_;
  if (request.remembered) {
    ++counts.own_checked;
    if (version.initial() || (own ? before_acked(version, request) : version == request.before)) ++counts.stale;
  }
  Place& place = place_of(request.key);
  if (!own && place.key == request.key) place.seen = version;
}

void ClientOracle::missed(const StoreRequest& request, Picos now, bool measured) {
  end_get(request, now, measured);
  ++counts.misses;
  if (measured) ++counts.window_misses;
}

void ClientOracle::end_get(const StoreRequest& request, Picos now, bool measured) {
  ++counts.gets;
  if (!measured) return;
  ++counts.window_gets;
  get_latency.record(now - request.first);
}

void ClientOracle::put_done(const StoreRequest& request, Picos now, bool measured) {
  ++counts.puts;
  if (measured) {
    ++counts.window_puts;
    put_latency.record(now - request.first);
  }
  Place& place = place_of(request.key);
  if (place.key != request.key || place.acked > request.number) return;
  place.acked = request.number + 1;
  place.before = request.before;
}

void ClientOracle::begin_interval() {
  counts.window_gets = counts.window_puts = counts.window_misses = 0;
  for (Histogram* latency : {&get_latency, &put_latency}) {
    if (latency->count() > 0) latency->clear();
  }
}

}  // namespace verbscope
