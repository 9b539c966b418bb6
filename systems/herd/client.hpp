// The data path of a client of HERD (region.hpp says how it meets the server).
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "microbench/loop/send_queue.hpp"
#include "systems/herd/echo.hpp"
#include "systems/herd/region.hpp"
#include "systems/rpc/client.hpp"
#include "systems/store/client_end.hpp"

namespace verbscope::herd {

// A request that waits for its response, and its bytes, which stay until then. A length is before the hash, of a GET
// too, which sends it only in a retry.
struct Open : StoreRequestSlot {
  KeyHash key;
  std::byte* end = nullptr;  // of its bytes, which a retry's word follows
};

// A client's requests to one thread of the server.
struct ServerLane : RequestLane<Open> {
  bool ring = false;  // the bell is due for a retry that is in its slot
  // Requests by WRITE: addresses in the server's memory of the ends of its slots and retry slots, and of its bell.
  std::uint64_t first_slot = 0;
  std::uint64_t first_retry = 0;
  std::uint64_t bell = 0;
  // Requests by SEND.
  decltype(ibv_send_wr{}.wr.ud) to{};
};

// What the client posts: prebuilt but for places and lengths.
struct Posts {
  ibv_send_wr request{};
  ibv_sge segment{};
  ibv_send_wr ring{};
  ibv_sge ring_segment{};
  std::uint64_t* bell_word = nullptr;  // what is written to a bell
  std::uint32_t inline_bytes = 0;
};

class Asker : public StoreAsker<Asker, StoreClientState, ServerLane> {
 public:
  Posts* posts = nullptr;
  RequestRegion places;
  bool by_send = false;
  std::optional<EchoRule> echo;  // the server has no store: each request has a value, which comes back

  bool send_new(const ServerLane& lane, Open& place, const KeyHash& key, RunEnd& end) {
    place.key = key;
    return send(lane, place, end);
  }

  bool take(const ibv_wc& wc, Picos now, bool measured, RunEnd& end) {
    if (is_send_id(wc.wr_id)) return true;
    ClientOracle& oracle = *state->oracle;
    const std::byte* const value = recvs.take_body(wc);
    const std::uint32_t tag = be32toh(wc.imm_data);
    const std::uint32_t server = tagged(tag);
    if (server >= lanes.size() || (wc.wc_flags & IBV_WC_WITH_IMM) == 0) [[unlikely]] {
      ++oracle.counts.wrong;  // no response at all
      return true;
    }
    Open* const answered = lanes[server].tagged_with(tag);
    if (answered == nullptr) {
      ++oracle.counts.surplus;
      return cover(end);
    }
    Open& place = *answered;
    place.open = false;
    close_one();
    const std::uint64_t bytes = wc.byte_len - kGrh.value;
    if (echo) {
      const std::byte* const sent = place.end - put_bytes(places.value);
      const bool right = bytes == places.value && is_echo(*echo, place.key, sent, value, bytes);
      oracle.echoed(place.request, right, now, measured);
    } else if (place.request.put) {
      oracle.put_done(place.request, now, measured);
    } else if (bytes == kStatusBytes) {
      oracle.missed(place.request, now, measured);
    } else {
      oracle.hit(place.request, value, bytes, now, measured);
    }
    return cover(end);
  }

  // Asks again for the oldest request of each lane, when it waits for too long. A send queue with room for the retry
  // alone rings later.
  bool ask_again(Picos now, RunEnd& end) {
    for (ServerLane& lane : lanes) {
      if (!lane.ring && !send_again(lane, now, end)) return false;
      if (lane.ring && !ring(lane, end)) return false;
    }
    return true;
  }

 private:
  bool send(const ServerLane& lane, const Open& place, RunEnd& end) {
    const std::byte* begin = nullptr;
    if (has_value(place)) {
      const auto fill = [&](std::byte* value) { state->oracle->fill(place.request, value); };
      begin = write_put(place.end, place.key, places.value, fill);
    } else {
      begin = write_get(place.end, place.key);
    }
    const std::uint64_t slot = lane.first_slot + place.number % places.window * places.slot_bytes();
    return post(lane, place, begin, place.end, slot, end);
  }

  bool has_value(const Open& place) const { return place.request.put || echo; }

  // Posts the bytes from `begin` to `until`, which by WRITE end at the address `slot`.
  bool post(const ServerLane& lane, const Open& place, const std::byte* begin, const std::byte* until,
            std::uint64_t slot, RunEnd& end) {
    const auto bytes = static_cast<std::uint32_t>(until - begin);
    posts->segment.addr = reinterpret_cast<std::uint64_t>(begin);
    posts->segment.length = bytes;
    ibv_send_wr& wr = posts->request;
    wr.send_flags = bytes <= posts->inline_bytes ? unsigned{IBV_SEND_INLINE} : 0u;
    if (by_send) {
      wr.wr.ud = lane.to;
      wr.imm_data = htobe32(tag_of(state->oracle->client(), place.number));
    } else {
      wr.wr.rdma.remote_addr = slot - bytes;
    }
    return post_one(state->queues[0], wr, end);
  }

  bool send_again(ServerLane& lane, Picos now, RunEnd& end) {
    Open* const oldest = lane.oldest();
    if (oldest == nullptr || now - oldest->last < state->retry_after || state->queues[0].room == 0) return true;
    oldest->last = now;
    ++state->oracle->counts.retries;
    if (!cover(end, 1)) return false;
    if (by_send) return send(lane, *oldest, end);
    lane.ring = true;
    // The bytes are there still, a GET's behind a length of 0; the word follows them.
    const std::uint64_t word = retry_word(oldest->number);
    std::memcpy(oldest->end, &word, sizeof word);
    const std::byte* const begin = oldest->end - put_bytes(has_value(*oldest) ? places.value : 0);
    const std::uint64_t slot = lane.first_retry + oldest->number % places.window * places.retry_bytes();
    return post(lane, *oldest, begin, oldest->end + kWord, slot, end);
  }

  bool ring(ServerLane& lane, RunEnd& end) {
    if (state->queues[0].room == 0) return true;
    lane.ring = false;
    *posts->bell_word = (std::uint64_t{state->oracle->client()} + 1) << kRingBits | ++rings_;
    posts->ring.wr.rdma.remote_addr = lane.bell;
    return post_one(state->queues[0], posts->ring, end);
  }

  static constexpr int kRingBits = 40;  // a bell word is other than that of any other client, and of any before
  std::uint64_t rings_ = 0;
};

}  // namespace verbscope::herd
