// The data path of a thread of HERD's server (region.hpp says how it meets the clients): where it finds requests. What
// it does with them is the executor's.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "microbench/loop/recv_loop.hpp"
#include "systems/herd/executor.hpp"

namespace verbscope::herd {

// After so many looks in a row that found nothing a no-op is pushed (SIGCOMM 2014, section 4.1.1).
inline constexpr std::uint32_t kPollsToNoOp = 100;

// A thread's counts of the measured window.
struct ServerCounts {
  WorkerCounts passes;
  std::uint64_t served = 0;  // requests answered
  std::uint64_t looks = 0;   // at slots, or for completions
  std::uint64_t no_ops = 0;
};

struct Server : Executor {
  ibv_cq* cq = nullptr;

  // Requests by WRITE.
  std::byte* region = nullptr;
  RequestRegion places;
  std::uint64_t slot_bytes = 0;
  std::uint64_t wrap = 0;         // bytes from the first slot of a client to the last
  std::uint64_t bell = 0;         // what the bell word was last
  std::uint32_t first = 0;        // client at which a pass begins
  std::uint32_t empty_looks = 0;  // in a row
  // Requests by SEND.
  std::span<RecvLane> recvs;

  std::uint64_t strange = 0;  // requests that no client of the run sends
  std::uint64_t blocked = 0;  // times that a pass ended because a send queue was full
  bool measured = false;
  ServerCounts counts;

  // Where requests by WRITE come to.
  void place_slots(std::byte* memory, const RequestRegion& layout) {
    region = memory;
    places = layout;
    slot_bytes = layout.slot_bytes();
    wrap = slot_bytes * (layout.window - 1);
    for (std::uint32_t c = 0; c < clients.size(); ++c) {
      clients[c].slot = region + layout.slot_end(thread, c, 0);
      clients[c].last_slot = clients[c].slot + wrap;
    }
  }
};

// Takes the request at `source`, which nothing overwrites before it is answered; there is room for its response.
template <bool kPipelined, Node N>
inline bool take(N& node, Server& s, const Source& source, RunEnd& end) {
  s.empty_looks = 0;
  if constexpr (kPipelined) {
    --s.room;
    return push(node, s, &source, end);
  }
  collect(s, source);
  return flush_when_full(node, s, end);
}

// The client's next request was taken.
inline void advance(const Server& s, Client& client) {
  ++client.next;
  client.slot = client.slot == client.last_slot ? client.slot - s.wrap : client.slot + s.slot_bytes;
}

// The slot that ends at `end` is empty, but for a PUT's value, which stays until the response is there.
inline void clear_slot(std::byte* end) {
  std::memset(end - kKeyBytes - kLengthBytes, 0, kKeyBytes + kLengthBytes);
}

// Takes the client's next request from its slot. The slot is empty before the request is answered: the client may write
// to it again at once.
template <bool kPipelined, Node N>
inline bool take_from_slot(N& node, Server& s, Client& client, const Source& source, RunEnd& end) {
  std::byte* const slot = client.slot;
  if constexpr (kPipelined) {
    if (!take<true>(node, s, source, end)) return false;  // it is answered by a later step
    clear_slot(slot);
    advance(s, client);
    return true;
  }
  s.empty_looks = 0;
  collect(s, source);
  clear_slot(slot);
  advance(s, client);
  return flush_when_full(node, s, end);
}

// One pass over the slots: one of each client. False: a post failed.
template <bool kPipelined, Node N>
inline bool serve_slots(N& node, Server& s, RunEnd& end) {
  const auto count = static_cast<std::uint32_t>(s.clients.size());
  count_room(s);
  std::uint32_t c = s.first;
  for (std::uint32_t i = 0; i < count; ++i) {
    Client& client = s.clients[c];
    std::byte* const slot = client.slot;
    if (is_request(slot)) {
      if (s.room == 0) [[unlikely]] {
        ++s.blocked;
        break;
      }
      const Source source{.client = c, .number = client.next, .end = slot, .length = length_before(slot)};
      if (!take_from_slot<kPipelined>(node, s, client, source, end)) return false;
    } else if (kPipelined && ++s.empty_looks >= kPollsToNoOp && s.count > 0) {
      s.empty_looks = 0;
      if (s.measured) ++s.counts.no_ops;
      if (!push(node, s, nullptr, end)) return false;
    }
    c = c + 1 == count ? 0 : c + 1;
  }
  s.first = c;
  return end_pass(node, s, end);
}

// Takes what client `c` wrote again into the retry slot whose word is at `at`.
template <bool kPipelined, Node N>
inline bool take_retry(N& node, Server& s, std::uint32_t c, std::byte* at, RunEnd& end) {
  const std::uint64_t number = retried(load_word<std::uint64_t>(at));
  store_word<std::uint64_t>(at, 0);
  Client& client = s.clients[c];
  if (number > client.next) {  // all before the oldest that waits were answered
    ++s.strange;
    return true;
  }
  const bool before = number < client.next;
  if (!before) {  // the request itself is there, or was lost: it comes no more
    clear_slot(client.slot);
    advance(s, client);
  }
  return take<kPipelined>(
      node, s, {.client = c, .number = number, .executed = before, .end = at, .length = length_before(at)}, end);
}

// The requests that clients wrote again, when somebody has rung.
template <bool kPipelined, Node N>
inline bool serve_retries(N& node, Server& s, RunEnd& end) {
  const auto bell = load_word<std::uint64_t>(s.region + s.places.bell(s.thread));
  if (bell == s.bell) [[likely]]
    return true;
  count_room(s);
  for (std::uint32_t c = 0; c < s.clients.size(); ++c) {
    for (std::uint32_t r = 0; r < s.places.window; ++r) {
      std::byte* const at = s.region + s.places.retry_word(s.thread, c, r);
      if (!is_retry(load_word<std::uint64_t>(at))) continue;
      if (s.room == 0) return end_pass(node, s, end);  // the bell rings still
      if (!take_retry<kPipelined>(node, s, c, at, end)) return false;
    }
  }
  s.bell = bell;
  return end_pass(node, s, end);
}

// Takes the request that a RECV has brought, from a client that asks by SEND.
template <Node N>
inline bool take_message(N& node, Server& s, const ibv_wc& wc, RunEnd& end) {
  RecvLane& lane = s.recvs[recv_queue(wc.wr_id)];
  ++lane.consumed;
  const std::uint32_t tag = be32toh(wc.imm_data);
  const std::uint32_t c = tagged(tag);
  const std::uint64_t bytes = wc.byte_len - kGrh.value;
  const bool put = bytes == put_bytes(s.places.value);
  if (c >= s.clients.size() || (bytes != kGetBytes && !put)) {
    ++s.strange;
    return true;
  }
  Client& client = s.clients[c];
  const std::uint64_t number = tagged_number(tag, client.next);
  if (number > client.next || s.room == 0) return true;  // the client will ask again, for the one before it first
  const bool before = number < client.next;
  if (!before) ++client.next;
  return take<false>(node, s,
                     {.client = c,
                      .number = number,
                      .executed = before,
                      .end = lane.payloads + recv_place(wc.wr_id) * lane.stride + wc.byte_len,
                      .length = static_cast<std::uint16_t>(put ? s.places.value : 0)},
                     end);
}

// Takes what has completed: requests by SEND, and responses. Returns how many, or -1 with `end` set.
template <Node N>
inline int serve_messages(N& node, Server& s, RunEnd& end) {
  count_room(s);
  if (s.room == 0) ++s.blocked;
  const int count = take_completions<kRateBatch>(s.cq, std::max<std::size_t>(s.room, 1), end, [&](const ibv_wc& wc) {
    if (!is_send_id(wc.wr_id)) return take_message(node, s, wc, end);
    retire_signaled(s.queues[sent_queue(wc.wr_id)].lane);
    return true;
  });
  if (count < 0 || !end_pass(node, s, end)) return -1;
  for (std::size_t i = 0; i < s.recvs.size(); ++i) {
    RecvLane& lane = s.recvs[i];
    for (; lane.consumed >= lane.list; lane.consumed -= lane.list) {
      if (!post_succeeded(post_next_recvs(lane), static_cast<std::uint32_t>(i), end)) return -1;
    }
  }
  return count;
}

// One pass. Returns whether completions came too; -1: a failure.
template <Node N>
inline int serve(N& node, Server& s, RunEnd& end) {
  if (!s.recvs.empty()) {
    if (s.measured) ++s.counts.looks;
    return serve_messages(node, s, end);
  }
  node.look(s.clients.size() + 1);
  if (s.measured) s.counts.looks += s.clients.size();
  const bool good = s.pipelined() ? serve_retries<true>(node, s, end) && serve_slots<true>(node, s, end)
                                  : serve_retries<false>(node, s, end) && serve_slots<false>(node, s, end);
  if (!good) return -1;
  return reap_answers(s.cq, s.queues, end);
}

// The pass that begins is measured in the window. Where the rate was not steady, a window came before.
inline void begin_pass(Server& s, const RunControl& control) {
  const bool measured = in_window(control.phase.load(std::memory_order_relaxed));
  if (measured && !s.measured) [[unlikely]]
    s.counts = {};
  s.measured = measured;
  s.batches = measured ? &s.counts.passes.batches : nullptr;
}

// A pass has answered `served` requests, and was `blocked`.
inline void note_pass(Server& s, std::uint64_t served, std::uint64_t blocked) {
  if (!s.measured) return;
  s.counts.served += served;
  count_pass(s.counts.passes, served, s.recvs.empty() ? s.clients.size() : s.max_batch, blocked);
}

// Serves until told to quit; never waits for more requests than there are.
template <Node N>
void server_loop(N& node, Server& s, const RunControl& control, ThreadTally& tally) {
  if (s.recvs.empty()) {
    node.watch(s.region + s.places.polled_begin(s.thread), s.places.polled_bytes());
    node.watch(s.region + s.places.bell(s.thread), kLine);
  }
  for (;;) {
    begin_pass(s, control);
    const std::uint64_t before = s.served, blocked = s.blocked;
    const int completed = serve(node, s, tally.end);
    if (completed < 0) return;
    note_pass(s, s.served - before, s.blocked - blocked);
    if (s.served > before) {
      tally.done_ops.store(s.served, std::memory_order_relaxed);
    } else if (completed == 0 && s.count == 0) {
      if (must_give_up(control, tally.end)) return;
      node.relax();
    }
  }
}

}  // namespace verbscope::herd
