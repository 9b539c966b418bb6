// The data path of a client of HERD.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

#include "microbench/loop/send_queue.hpp"
#include "systems/herd/message.hpp"
#include "systems/requests/client.hpp"
#include "systems/requests/request_slots.hpp"
#include "systems/store/client_end.hpp"

namespace verbscope::herd {

// A request that waits for its response. In its bytes a length precedes the hash, also that of a GET, which sends it
// only in a retry.
struct Open : StoreRequestSlot {
  KeyHash key;
  std::byte* end = nullptr;  // of its bytes
};

// A client's requests to one thread of the server.
struct ServerLane : SlotLane<Open> {
  UdAddress to{};  // requests by SEND
};

class Asker : public StoreAsker<Asker, StoreClientState, ServerLane> {
 public:
  SlotWriter* writer = nullptr;
  std::uint32_t value = 0;  // bytes
  bool by_send = false;
  std::optional<EchoRule> echo;  // the server has no store: it sends the value of each request back

  bool send_new(const ServerLane& lane, Open& place, const KeyHash& key, RunEnd& end) {
    place.key = key;
    return send(lane, place, end);
  }

  bool take(const ibv_wc& wc, Picos now, bool measured, RunEnd& end) {
    if (is_send_id(wc.wr_id)) return true;
    ClientOracle& oracle = *state->oracle;
    const std::byte* const body = recvs.take_body(wc);
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
      const std::byte* const sent = place.end - put_bytes(value);
      const bool right = bytes == value && is_echo(*echo, place.key, sent, body, bytes);
      oracle.echoed(place.request, right, now, measured);
    } else if (place.request.put) {
      oracle.put_done(place.request, now, measured);
    } else if (bytes == kStatusBytes) {
      oracle.missed(place.request, now, measured);
    } else {
      oracle.hit(place.request, body, bytes, now, measured);
    }
    return cover(end);
  }

  // Asks again for the oldest request of each lane if it has waited for too long.
  bool ask_again(Picos now, RunEnd& end) {
    SendQueue& queue = state->queues[0];
    return retry_oldest(lanes, *writer, queue, now, state->retry_after, end, [&](ServerLane& lane, const Open& oldest) {
      ++state->oracle->counts.retries;
      if (!cover(end, 1)) return false;
      if (by_send) return send(lane, oldest, end);
      return writer->write_retry(queue, lane, oldest, oldest.end - put_bytes(has_value(oldest) ? value : 0), end);
    });
  }

 private:
  bool has_value(const Open& place) const { return place.request.put || echo; }

  bool send(const ServerLane& lane, const Open& place, RunEnd& end) {
    const auto fill = [&](std::byte* bytes) { state->oracle->fill(place.request, bytes); };
    const std::byte* const begin =
        has_value(place) ? write_put(place.end, place.key, value, fill) : write_get(place.end, place.key);
    SendQueue& queue = state->queues[0];
    if (!by_send) return writer->write(queue, lane, place, begin, end);
    ibv_send_wr& wr = writer->make_request(begin, place.end);
    wr.wr.ud = lane.to;
    wr.imm_data = htobe32(tag_of(state->oracle->client(), place.number));
    return post_one(queue, wr, end);
  }
};

}  // namespace verbscope::herd
