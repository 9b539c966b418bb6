// Requests by UC WRITE into slots of the server's memory, which its threads poll (Kalia, Kaminsky and Andersen, "Using
// RDMA Efficiently for Key-Value Services", SIGCOMM 2014, section 4.2). The responses are datagrams, whose tags name
// the requests (peers.hpp). Data path, but for WrittenRequests.
//
// A client numbers its requests to each of the server's threads from 0 on. Request r ends where slot r mod W ends. Its
// last byte is not 0, and the thread clears it when it takes the request. So a last byte that is not 0 is a new
// request, whose other bytes have arrived too: adapters write from left to right. Adapters write whole lines; soft-RoCE
// copies words and single bytes, so that a part of the last word can be visible without the rest.
//
// A thread polls the slot of each client's next request only. If a request or its response is lost, the client writes
// the request into retry slot r mod W, with its number after it, and then rings the thread's bell. The WRITEs of a
// client arrive in order: when the retry is visible, the request itself has arrived or never will.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "common/error.hpp"
#include "machine/memory.hpp"
#include "systems/requests/client.hpp"
#include "systems/requests/peers.hpp"
#include "systems/requests/server.hpp"
#include "wire/pcie.hpp"

namespace verbscope {

inline constexpr std::uint64_t kNumberBytes = 8;  // of the number in a retry slot

// The server's memory: all slots, all retry slots, all bells. No two peers write to one cache line.
struct SlotLayout {
  std::uint32_t servers = 1;        // threads
  std::uint32_t clients = 1;        // client threads of all machines
  std::uint32_t window = 1;         // slots of a client at each thread
  std::uint64_t request_bytes = 0;  // of the longest request
  std::uint64_t begin = 0;          // offset of the first slot in the region

  std::uint64_t slot_bytes() const { return round_up(request_bytes, kCacheLine.value); }
  std::uint64_t retry_bytes() const { return round_up(request_bytes + kNumberBytes, kCacheLine.value); }
  // The slot of request r of client c to thread s, by the formula of section 4.2.
  std::uint64_t slot_index(std::uint64_t s, std::uint64_t c, std::uint64_t r) const {
    return s * window * clients + c * window + r % window;
  }
  // Offsets of the first byte after a slot, and of the number in the retry slot with the same index.
  std::uint64_t slot_end(std::uint64_t s, std::uint64_t c, std::uint64_t r) const {
    return begin + (slot_index(s, c, r) + 1) * slot_bytes();
  }
  std::uint64_t retry_number(std::uint64_t s, std::uint64_t c, std::uint64_t r) const {
    return slots_end() + (slot_index(s, c, r) + 1) * retry_bytes() - kNumberBytes;
  }
  std::uint64_t bell(std::uint64_t s) const { return slots_end() + slots() * retry_bytes() + s * kCacheLine.value; }

  // Thread s polls this part, and its bell.
  std::uint64_t polled_begin(std::uint64_t s) const { return begin + slot_index(s, 0, 0) * slot_bytes(); }
  std::uint64_t polled_bytes() const { return std::uint64_t{clients} * window * slot_bytes(); }

  std::uint64_t slots() const { return std::uint64_t{servers} * clients * window; }
  std::uint64_t slots_end() const { return begin + slots() * slot_bytes(); }
  std::uint64_t bytes() const { return bell(servers); }
};

// The word in a retry slot: the request's number, and a mark in the byte that arrives last.
inline constexpr std::uint64_t kRetryMark = std::uint64_t{1} << 63;
constexpr std::uint64_t retry_word(std::uint64_t number) {
  return number | kRetryMark;
}
constexpr bool is_retry(std::uint64_t word) {
  return (word & kRetryMark) != 0;
}
constexpr std::uint64_t retried_number(std::uint64_t word) {
  return word & ~kRetryMark;
}

// A client's requests to one thread of the server. A Slot has `end`, the end of its bytes, which stay until the
// response has arrived; a retry's number follows them.
template <class Slot>
struct SlotLane : RequestLane<Slot> {
  // Addresses in the server's memory: the ends of the first slot and of the first retry slot, and the bell.
  std::uint64_t first_slot = 0;
  std::uint64_t first_retry = 0;
  std::uint64_t bell = 0;
  bool bell_due = false;  // a retry is in its slot
};

// Writes the requests of a client thread.
struct SlotWriter {
  SlotLayout layout;
  ibv_send_wr request{}, ring{};  // prebuilt but for places and lengths
  ibv_sge request_segment{}, ring_segment{};
  std::uint64_t* bell_word = nullptr;  // what is written to a bell
  std::uint32_t inline_bytes = 0;      // largest request that is inlined
  std::uint32_t client = 0;            // number of the client thread
  std::uint64_t rings = 0;

  // The request with the bytes from `begin` to `end`, for any way to post it.
  ibv_send_wr& make_request(const std::byte* begin, const std::byte* end) {
    const auto bytes = static_cast<std::uint32_t>(end - begin);
    request_segment.addr = reinterpret_cast<std::uint64_t>(begin);
    request_segment.length = bytes;
    request.send_flags = bytes <= inline_bytes ? unsigned{IBV_SEND_INLINE} : 0u;
    return request;
  }

  template <class Slot>
  bool write(SendQueue& queue, const SlotLane<Slot>& lane, const Slot& slot, const std::byte* begin, RunEnd& end) {
    return write_to(queue, lane.first_slot + slot.number % layout.window * layout.slot_bytes(), begin, slot.end, end);
  }
  // Writes a request again, whose bytes are still there; ring() follows.
  template <class Slot>
  bool write_retry(SendQueue& queue, SlotLane<Slot>& lane, const Slot& slot, const std::byte* begin, RunEnd& end) {
    lane.bell_due = true;
    const std::uint64_t word = retry_word(slot.number);
    std::memcpy(slot.end, &word, sizeof word);
    return write_to(queue, lane.first_retry + slot.number % layout.window * layout.retry_bytes(), begin,
                    slot.end + kNumberBytes, end);
  }
  // Rings if the queue has room.
  template <class Slot>
  bool ring_bell(SendQueue& queue, SlotLane<Slot>& lane, RunEnd& end) {
    if (queue.room == 0) return true;
    lane.bell_due = false;
    *bell_word = (std::uint64_t{client} + 1) << kRingBits | ++rings;
    ring.wr.rdma.remote_addr = lane.bell;
    return post_one(queue, ring, end);
  }

 private:
  static constexpr int kRingBits = 40;  // no two clients write the same word to a bell, and no client writes one again

  bool write_to(SendQueue& queue, std::uint64_t slot_end, const std::byte* from, const std::byte* to, RunEnd& end) {
    ibv_send_wr& wr = make_request(from, to);
    wr.wr.rdma.remote_addr = slot_end - static_cast<std::uint64_t>(to - from);
    return post_one(queue, wr, end);
  }
};

// Sends the oldest request of each lane again if it has waited for `after`, by `send_again(lane, slot)`, and rings. If
// the queue has room for the retry only, the bell rings later.
template <class Lane, class SendAgain>
inline bool retry_oldest(std::span<Lane> lanes, SlotWriter& writer, SendQueue& queue, Picos now, Picos after,
                         RunEnd& end, SendAgain&& send_again) {
  for (Lane& lane : lanes) {
    if (!lane.bell_due && queue.room > 0) {
      auto* const oldest = lane.oldest();
      if (oldest != nullptr && now - oldest->last >= after) {
        oldest->last = now;
        if (!send_again(lane, *oldest)) return false;
      }
    }
    if (lane.bell_due && !writer.ring_bell(queue, lane, end)) return false;
  }
  return true;
}

// The memory of a client thread's requests, and the writer that posts them. The requests may also go by SEND.
class WrittenRequests {
 public:
  WrittenRequests(const ThreadSetup& setup, const SlotLayout& layout, std::uint32_t inline_bytes, bool by_send = false)
      : buffer_(Bytes((layout.servers * std::uint64_t{layout.window} + 1) * layout.retry_bytes()), setup.huge_pages),
        mr_(setup.pd, buffer_.data(), buffer_.size()) {
    std::byte* const last = buffer_.data() + buffer_.size() - kNumberBytes;
    writer_.layout = layout;
    writer_.bell_word = reinterpret_cast<std::uint64_t*>(last);
    writer_.inline_bytes = inline_bytes;
    writer_.client = number_of_client(setup);
    writer_.request_segment.lkey = mr_.lkey();
    writer_.ring_segment = {reinterpret_cast<std::uint64_t>(last), static_cast<std::uint32_t>(kNumberBytes),
                            mr_.lkey()};
    writer_.request.sg_list = &writer_.request_segment;
    writer_.ring.sg_list = &writer_.ring_segment;
    for (ibv_send_wr* wr : {&writer_.request, &writer_.ring}) {
      wr->wr_id = send_id(0);
      wr->num_sge = 1;
      wr->opcode = by_send ? IBV_WR_SEND_WITH_IMM : IBV_WR_RDMA_WRITE;
      wr->send_flags = inline_bytes >= kNumberBytes ? unsigned{IBV_SEND_INLINE} : 0u;
    }
  }
  WrittenRequests(const WrittenRequests&) = delete;
  WrittenRequests& operator=(const WrittenRequests&) = delete;

  SlotWriter& writer() { return writer_; }

  // The bytes of the slots, `window` for each thread of the server.
  template <class Slot>
  void place_bytes(std::span<Slot> slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i].end = buffer_.data() + (i + 1) * writer_.layout.retry_bytes() - kNumberBytes;
    }
  }
  // The slots of each thread in the server's region. Throws Error if that is too small.
  template <class Lane>
  void place_lanes(std::span<Lane> lanes, const RemoteRegion& region) {
    const SlotLayout& layout = writer_.layout;
    if (layout.bytes() > region.bytes) {
      fail("the server has {} bytes for requests, not the {} that this client expects", region.bytes, layout.bytes());
    }
    writer_.request.wr.rdma.rkey = writer_.ring.wr.rdma.rkey = region.rkey;
    for (std::size_t t = 0; t < lanes.size(); ++t) {
      lanes[t].first_slot = region.address + layout.slot_end(t, writer_.client, 0);
      lanes[t].first_retry = region.address + layout.retry_number(t, writer_.client, 0) + kNumberBytes;
      lanes[t].bell = region.address + layout.bell(t);
    }
  }

 private:
  Buffer buffer_;  // the requests, then the word for bells
  Mr mr_;
  SlotWriter writer_;
};

// A client as a thread of the server sees it.
struct alignas(kCacheLine.value) SlotClient : ResponseTarget {
  std::uint64_t next = 0;          // number of the next request
  std::byte* slot = nullptr;       // the end of its slot
  std::byte* last_slot = nullptr;  // the end of the last of the client's slots
};
static_assert(sizeof(SlotClient) == kCacheLine.value);

// A thread of the server. Systems add kCleared: leave_slot() zeroes 8 bytes from `end - kCleared` on, and the last 8
// bytes.
struct SlotServer : RequestServer {
  std::span<SlotClient> clients;
  std::uint32_t thread = 0;
  std::byte* region = nullptr;
  SlotLayout layout;
  std::uint64_t slot_bytes = 0;
  std::uint64_t wrap = 0;  // bytes from the first slot of a client to the last
  std::byte* bell_word = nullptr;
  std::uint64_t bell = 0;       // the word at the last look
  SlotClient* first = nullptr;  // client at which a pass begins
  std::uint64_t blocked = 0;    // requests that this pass left (PassCounts::blocked)

  void place_slots(std::byte* memory, const SlotLayout& slots) {
    region = memory;
    layout = slots;
    slot_bytes = layout.slot_bytes();
    wrap = slot_bytes * (layout.window - 1);
    bell_word = region + layout.bell(thread);
    first = clients.data();
    for (std::uint32_t c = 0; c < clients.size(); ++c) {
      clients[c].slot = region + layout.slot_end(thread, c, 0);
      clients[c].last_slot = clients[c].slot + wrap;
    }
  }

  // Watches the memory that clients write to.
  template <Node N>
  void watch(N& node) const {
    node.watch(region + layout.polled_begin(thread), layout.polled_bytes());
    node.watch(bell_word, kCacheLine.value);
  }
};

// Whether a new request ends at `end`.
inline bool is_request(std::byte* end) {
  return load_word<std::uint8_t>(end - 1) != 0;
}

// The client's next request was taken from its slot, which ends at `end`, or was lost. The slot is empty before the
// response leaves: the client may write to it again as soon as that has arrived.
template <class Server>
[[gnu::always_inline]] inline void leave_slot(const Server& s, SlotClient& client, std::byte* end) {
  ++client.next;
  client.slot = end == client.last_slot ? end - s.wrap : end + s.slot_bytes;
  std::memset(end - Server::kCleared, 0, kNumberBytes);  // two stores, not a call
  std::memset(end - kNumberBytes, 0, kNumberBytes);
}

// One look at the slot of each client, from s.first on: `take(client, slot)` takes the request that ends at `slot`,
// `found_none()` is called for an empty slot. False of either ends the pass.
template <class Take, class FoundNone>
[[gnu::always_inline]] inline void poll_slots(SlotServer& s, Take&& take, FoundNone&& found_none) {
  SlotClient* const begin = s.clients.data();
  for (const auto& [from, to] : {std::pair(s.first, begin + s.clients.size()), std::pair(begin, s.first)}) {
    for (SlotClient* client = from; client != to; ++client) {
      std::byte* const slot = client->slot;
      if (!is_request(slot)) {
        if (!found_none()) return;
      } else if (!take(*client, slot)) [[unlikely]] {
        return;
      }
    }
  }
}

// Takes the requests in retry slots, from s.first on, if the bell has rung. `has_room(client)`: there is room for a
// response, otherwise the retry stays for the next pass. `take(client, number, end, repeated)` takes the request that
// ends at `end`; `repeated`: it was taken before. False of take() is a failure.
template <class Server, class HasRoom, class Take>
inline bool poll_retries(Server& s, HasRoom&& has_room, Take&& take) {
  const auto bell = load_word<std::uint64_t>(s.bell_word);
  if (bell == s.bell) [[likely]]
    return true;
  const std::size_t count = s.clients.size();
  const auto first = static_cast<std::size_t>(s.first - s.clients.data());
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t c = first + i < count ? first + i : first + i - count;
    SlotClient& client = s.clients[c];
    for (std::uint32_t r = 0; r < s.layout.window; ++r) {
      std::byte* const at = s.region + s.layout.retry_number(s.thread, c, r);
      const auto word = load_word<std::uint64_t>(at);
      if (!is_retry(word)) continue;
      if (!has_room(client)) {
        all = false;
        continue;
      }
      store_word<std::uint64_t>(at, 0);
      const std::uint64_t number = retried_number(word);
      if (number > client.next) {  // a client retries its oldest request: those before it were answered
        ++s.unknown;
        continue;
      }
      const bool repeated = number < client.next;
      if (!repeated) leave_slot(s, client, client.slot);
      if (!take(client, number, at, repeated)) return false;
    }
  }
  if (all) s.bell = bell;
  return true;
}

}  // namespace verbscope
