// The data path of a client of the cached store (message.hpp: the protocol).
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "microbench/loop/send_queue.hpp"
#include "systems/cached/message.hpp"
#include "systems/requests/client.hpp"
#include "systems/store/client_end.hpp"
#include "systems/store/workload.hpp"

namespace verbscope::cached {

// The values that a client caches, with their versions, for a share of the keys.
class CachedValues {
 public:
  // A hash chooses `percent` of the `keys` keys. Their values before the run are cached from the beginning. Memory is
  // used when a key is first requested.
  CachedValues(const StoreValues& values, std::uint64_t keys, std::uint32_t percent)
      : values_(values),
        percent_(percent),
        item_(item_bytes(static_cast<std::uint32_t>(values.bytes()))),
        there_(percent == 0 ? 0 : keys),
        items_(std::make_unique_for_overwrite<std::byte[]>(there_.size() * item_)) {}

  bool caches(const KeyHash& key) const { return (key.high & 0xffffffff) * 100 >> 32 < percent_; }

  // Copies value and version of a cached key.
  void copy(std::uint64_t key, std::byte* to) {
    std::byte* const item = items_.get() + key * item_;
    if (!there_[key]) {
      values_.fill(item, key, StoreVersion());
      const std::uint64_t version = StoreVersion().word();
      std::memcpy(item + values_.bytes(), &version, sizeof version);
      there_[key] = true;
    }
    std::memcpy(to, item, item_);
  }
  // Replaces value and version of a key.
  void update(std::uint64_t key, const std::byte* item) {
    std::memcpy(items_.get() + key * item_, item, item_);
    there_[key] = true;
  }

 private:
  StoreValues values_;
  std::uint32_t percent_;
  std::size_t item_;  // bytes
  std::vector<bool> there_;
  std::unique_ptr<std::byte[]> items_;  // of a key that is not there: nothing yet
};

// A request that waits for its response. Its bytes stay until the response has arrived. Before those of a GET are the
// value that the client expects and its version.
struct Open : StoreRequestSlot {
  std::byte* end = nullptr;  // of its bytes
  std::uint32_t bytes = 0;   // that are sent
  bool cached = false;       // the client caches the value of this key
};

// A client's requests to one thread of the server.
struct ServerLane : RequestLane<Open> {
  UdAddress to{};
};

// Completed GETs.
struct GetKinds {
  std::uint64_t known = 0;      // sent with a version
  std::uint64_t confirmed = 0;  // whose version was current

  void add(bool was_known, bool was_confirmed) {
    known += was_known ? 1 : 0;
    confirmed += was_confirmed ? 1 : 0;
  }
};

struct ClientState : StoreClientState {
  GetKinds run, window;  // of the whole run, of the measured interval

  void begin_interval() {
    StoreClientState::begin_interval();
    window = {};
  }
};

class Asker : public StoreAsker<Asker, ClientState, ServerLane> {
 public:
  CachedValues* cache = nullptr;
  ibv_send_wr* request = nullptr;  // with one segment; small keys: none
  std::uint32_t value = 0;         // bytes
  std::uint32_t inline_bytes = 0;  // of a request that is inlined
  bool small_keys = false;

  bool send_new(const ServerLane& lane, Open& place, const KeyHash& key, RunEnd& end) {
    if (!small_keys) write(place, key);
    return send(lane, place, end);
  }

  bool take(const ibv_wc& wc, Picos now, bool measured, RunEnd& end) {
    if (is_send_id(wc.wr_id)) return true;
    const std::byte* const item = recvs.take_body(wc);
    if (Open* const place = place_of(be32toh(wc.imm_data)); place != nullptr) {
      place->open = false;
      close_one();
      finish(*place, item, wc.byte_len - static_cast<std::uint32_t>(kGrh.value), now, measured);
    } else {
      ++state->oracle->counts.surplus;
    }
    return cover(end);
  }

  // Resends, in their order, the requests of each lane that have waited for too long: when one was lost the server
  // dropped those after it.
  bool ask_again(Picos now, RunEnd& end) {
    std::uint32_t again = 0;
    for (ServerLane& lane : lanes) {
      for (std::uint64_t i = 0; i < lane.slots.size() && state->queues[0].room > 0; ++i) {
        Open& place = lane.slots[(lane.sent + i) % lane.slots.size()];
        if (!place.open || now - place.last < state->retry_after) continue;
        place.last = now;
        ++state->oracle->counts.retries;
        if (!cover(end, ++again) || !send(lane, place, end)) return false;
      }
    }
    return true;
  }

 private:
  void write(Open& place, const KeyHash& key) {
    place.cached = cache->caches(key);
    write_request(place.end, key, place.request.put ? value : 0);
    if (place.request.put) {
      state->oracle->fill(place.request, item_of(place));
      const std::uint64_t version = StoreVersion(state->oracle->client(), place.request.number).word();
      std::memcpy(item_of(place) + value, &version, sizeof version);
      place.bytes = put_bytes(value);
    } else {
      if (place.cached) cache->copy(place.request.key, item_of(place));
      place.bytes = place.cached ? kKnownGetBytes : kGetBytes;
    }
  }

  // Value and version in the bytes of a request.
  std::byte* item_of(const Open& place) const { return place.end - put_bytes(value); }

  bool send(const ServerLane& lane, const Open& place, RunEnd& end) {
    request->wr.ud = lane.to;
    if (small_keys) {
      request->imm_data = htobe32(row_of(place.request.key));
    } else {
      request->imm_data = htobe32(tag_of(state->oracle->client(), place.number));
      request->sg_list->addr = reinterpret_cast<std::uint64_t>(place.end - place.bytes);
      request->sg_list->length = place.bytes;
      request->send_flags = place.bytes <= inline_bytes ? unsigned{IBV_SEND_INLINE} : 0u;
    }
    return post_one(state->queues[0], *request, end);
  }

  // The request that a response answers; null: it was answered before.
  Open* place_of(std::uint32_t immediate) {
    if (small_keys) return oldest_of(key_in(immediate));
    const std::uint32_t server = tagged(immediate);
    if (server >= lanes.size()) return nullptr;
    return lanes[server].tagged_with(immediate);
  }
  Open* oldest_of(std::uint64_t key) {
    const KeyHash hash = state->oracle->workload().hash(key);
    Open* oldest = nullptr;
    for (Open& place : lanes[owner_of(hash, static_cast<std::uint32_t>(lanes.size()))].slots) {
      if (!place.open || place.request.key != key) continue;
      if (oldest == nullptr || place.number < oldest->number) oldest = &place;
    }
    return oldest;
  }

  // Takes the response to a request, `bytes` bytes at `item`.
  void finish(const Open& place, const std::byte* item, std::uint32_t bytes, Picos now, bool measured) {
    ClientOracle& oracle = *state->oracle;
    if (place.request.put) {
      oracle.put_done(place.request, now, measured);
      if (bytes != 0) ++oracle.counts.wrong;
      if (place.cached) cache->update(place.request.key, item_of(place));
      return;
    }
    const bool known = place.cached, confirmed = known && bytes == 0;
    count(known, confirmed, measured);
    if (bytes == kStatusBytes) return oracle.missed(place.request, now, measured);
    const std::byte* const got = confirmed ? item_of(place) : item;
    const bool whole = confirmed || bytes == item_bytes(value);
    oracle.hit(place.request, got, whole ? value : 0, now, measured);
    if (!whole) return;
    if (!of_its_version(place.request.key, got)) ++oracle.counts.wrong;
    if (known && !confirmed) cache->update(place.request.key, got);
  }

  void count(bool known, bool confirmed, bool measured) {
    state->run.add(known, confirmed);
    if (measured) state->window.add(known, confirmed);
  }

  // Whether a value, all of one version, is of the version that follows it.
  bool of_its_version(std::uint64_t key, const std::byte* item) const {
    std::uint64_t version = 0;
    std::memcpy(&version, item + value, sizeof version);
    return state->oracle->values().begins(item, key, StoreVersion::of_word(version));
  }
};

// Counts of a client thread's GETs, beside those of its oracle.
struct CachedAccount {
  virtual ~CachedAccount() = default;
  virtual const ClientState& state() const = 0;
};

}  // namespace verbscope::cached
