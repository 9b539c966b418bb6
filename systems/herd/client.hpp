// The data path of a client of HERD (region.hpp says how it meets the server).
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "microbench/loop/lane_queue.hpp"
#include "systems/answers/inbox.hpp"
#include "systems/herd/echo.hpp"
#include "systems/herd/region.hpp"
#include "systems/store/store.hpp"

namespace verbscope::herd {

// A request that waits for its response, and where its bytes lie until that has come. A length is before the hash, of a
// GET too, which does not send it but in a retry.
struct Open {
  StoreRequest request;
  KeyHash key;
  Picos last{0};             // when it was sent last
  std::uint64_t number = 0;  // among those to its thread of the server
  std::byte* end = nullptr;  // of its bytes, which a retry's word follows
  bool open = false;
};

// A client's requests to one thread of the server.
struct ServerLane {
  std::span<Open> window;  // number r in place r % size
  std::uint64_t sent = 0;
  bool ring = false;  // the bell is due for a retry that is in its slot
  // Requests by WRITE: addresses in the server's memory of the ends of its slots and retry slots, and of its bell.
  std::uint64_t first_slot = 0;
  std::uint64_t first_retry = 0;
  std::uint64_t bell = 0;
  // Requests by SEND.
  ibv_send_wr to{};
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

class Asker {
 public:
  StoreClientState* state = nullptr;
  std::span<ServerLane> lanes;  // one a thread of the server
  Posts* posts = nullptr;
  AnswerInbox inbox;
  RequestRegion places;
  bool by_send = false;
  std::optional<EchoRule> echo;  // the server has no store: each request has a value, which comes back
  std::uint32_t window = 1;      // requests at most

  std::uint32_t open() const { return open_; }

  bool ask(Picos now, RunEnd& end) {
    StoreBook& book = *state->book;
    while (open_ < window && state->queues[0].room > 0) {
      if (!drawn_) {
        next_ = book.draw();
        next_key_ = book.workload().hash(next_.key);
        drawn_ = true;
      }
      ServerLane& lane = lanes[owner_of(next_key_, static_cast<std::uint32_t>(lanes.size()))];
      Open& place = lane.window[lane.sent % lane.window.size()];
      if (place.open) return true;  // its response was lost
      drawn_ = false;
      if (!inbox.cover(++open_, end)) return false;
      book.ask(next_, now);
      place.request = next_;
      place.key = next_key_;
      place.last = now;
      place.number = lane.sent++;
      place.open = true;
      if (!send(lane, place, end)) return false;
    }
    return true;
  }

  bool take(const ibv_wc& wc, Picos now, bool measured, RunEnd& end) {
    if (is_send_id(wc.wr_id)) return true;
    StoreBook& book = *state->book;
    const std::byte* const value = inbox.take_body(wc);
    const std::uint32_t tag = be32toh(wc.imm_data);
    const std::uint32_t server = tagged(tag);
    if (server >= lanes.size() || (wc.wc_flags & IBV_WC_WITH_IMM) == 0) [[unlikely]] {
      ++book.counts.wrong;  // no response at all
      return true;
    }
    ServerLane& lane = lanes[server];
    const std::uint64_t number = tagged_number(tag, lane.sent);
    Open& place = lane.window[number % lane.window.size()];
    if (!place.open || place.number != number) {
      ++book.counts.surplus;
      return inbox.cover(open_, end);
    }
    place.open = false;
    --open_;
    const std::uint64_t bytes = wc.byte_len - kGrh.value;
    if (echo) {
      const std::byte* const sent = place.end - put_bytes(places.value);
      const bool right = bytes == places.value && is_echo(*echo, place.key, sent, value, bytes);
      book.echoed(place.request, right, now, measured);
    } else if (place.request.put) {
      book.put_done(place.request, now, measured);
    } else if (bytes == kStatusBytes) {
      book.missed(place.request, now, measured);
    } else {
      book.hit(place.request, value, bytes, now, measured);
    }
    return inbox.cover(open_, end);
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
      const auto fill = [&](std::byte* value) { state->book->fill(place.request, value); };
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
      wr.wr.ud = lane.to.wr.ud;
      wr.imm_data = htobe32(tag_of(state->book->client(), place.number));
    } else {
      wr.wr.rdma.remote_addr = slot - bytes;
    }
    return post_one(state->queues[0], wr, 0, end);
  }

  bool send_again(ServerLane& lane, Picos now, RunEnd& end) {
    Open* oldest = nullptr;
    for (Open& place : lane.window) {
      if (place.open && (oldest == nullptr || place.number < oldest->number)) oldest = &place;
    }
    if (oldest == nullptr || now - oldest->last < state->retry_after || state->queues[0].room == 0) return true;
    oldest->last = now;
    ++state->book->counts.retries;
    if (!inbox.cover(open_ + 1, end)) return false;
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
    *posts->bell_word = (std::uint64_t{state->book->client()} + 1) << kRingBits | ++rings_;
    posts->ring.wr.rdma.remote_addr = lane.bell;
    return post_one(state->queues[0], posts->ring, 0, end);
  }

  StoreRequest next_;
  KeyHash next_key_;
  bool drawn_ = false;                  // `next_` waits for its place
  static constexpr int kRingBits = 40;  // a bell word is other than that of any other client, and of any before
  std::uint64_t rings_ = 0;
  std::uint32_t open_ = 0;
};

}  // namespace verbscope::herd
