// The data path of a thread of HERD's server (region.hpp says how it meets the clients): where it finds requests. What
// it does with them is the executor's.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/ring.hpp"
#include "systems/herd/executor.hpp"
#include "systems/rpc/server.hpp"
#include "systems/store/cache.hpp"

namespace verbscope::herd {

// After so many looks in a row that found nothing a no-op is pushed (SIGCOMM 2014, section 4.1.1).
inline constexpr std::uint32_t kPollsToNoOp = 100;
// A thread with a pipeline looks at its bell in each of so many passes, and before it sleeps: requests that wait for a
// no-op wait for the looks before it, and the bell would cost a thread of one client as much as that client's slot.
inline constexpr std::uint32_t kPassesToBell = 16;

// A request by SEND that has come.
struct Message {
  std::uint64_t recv = 0;  // wr_id of the RECV that it took
  std::uint32_t immediate = 0;
  std::uint32_t bytes = 0;
};

struct Server : Executor {
  std::uint32_t thread = 0;

  // Requests by WRITE.
  std::byte* region = nullptr;
  RequestRegion places;
  std::uint64_t slot_bytes = 0;
  std::uint64_t wrap = 0;  // bytes from the first slot of a client to the last
  std::byte* bell_word = nullptr;
  std::uint64_t bell = 0;                        // what it was last
  std::uint32_t passes_to_bell = kPassesToBell;  // as many: this pass looked at it
  Client* first = nullptr;                       // client at which a pass begins
  std::uint32_t empty_looks = 0;                 // in a row
  // Requests by SEND.
  std::span<RecvLane> recvs;
  Ring<Message> waiting;             // for room in the send queues; has room for all RECVs
  std::uint64_t head = 0, tail = 0;  // positions in `waiting`

  std::uint64_t strange = 0;  // requests that no client of the run sends
  std::uint64_t blocked = 0;  // times that a pass ended because a send queue was full
  CacheServerCounts counts;

  void begin_interval() { counts = {}; }
  // Where requests by WRITE come to.
  void place_slots(std::byte* memory, const RequestRegion& layout) {
    region = memory;
    places = layout;
    slot_bytes = layout.slot_bytes();
    wrap = slot_bytes * (layout.window - 1);
    bell_word = region + layout.bell(thread);
    first = clients.data();
    for (std::uint32_t c = 0; c < clients.size(); ++c) {
      clients[c].slot = region + layout.slot_end(thread, c, 0);
      clients[c].last_slot = clients[c].slot + wrap;
    }
  }
};

// A request that was executed before: a PUT is not executed again.
inline Source executed(Source source) {
  if (source.length != 0) source.length = Source::kExecuted;
  return source;
}

// The client's next request was taken, which ended at `end` or was lost. Its slot is empty: it has no length and no end
// of a hash. A PUT's value stays until the response is there.
[[gnu::always_inline]] inline void leave_slot(const Server& s, Client& client, std::byte* end) {
  ++client.next;
  client.slot = end == client.last_slot ? end - s.wrap : end + s.slot_bytes;
  std::memset(end - kKeyBytes - kLengthBytes, 0, kWord);
  std::memset(end - kWord, 0, kWord);
}

// Takes the client's next request from its slot. The slot is empty before the request is answered: the client may write
// to it again at once.
template <ServerPolicy kPolicy, Node N>
[[gnu::always_inline]] inline bool take_from_slot(N& node, Server& s, Client& client, std::byte* slot, RunEnd& end) {
  Item& item =
      collect<kPolicy>(s, {.client = &client, .number = client.next, .end = slot, .length = length_before(slot)});
  leave_slot(s, client, slot);
  return work<kPolicy>(node, s, item, end);
}

// A look that found nothing. A no-op comes after so many.
template <ServerPolicy kPolicy, Node N>
inline bool look_in_vain(N& node, Server& s, RunEnd& end) {
  if (++s.empty_looks < kPollsToNoOp || s.under_way() == 0) return true;
  s.empty_looks = 0;
  if (s.measured) ++s.counts.no_ops;
  return push_on<kPolicy>(node, s, *s.youngest, end);
}

// One pass over the slots: one of each client. False: a post failed.
template <ServerPolicy kPolicy, Node N>
inline bool serve_slots(N& node, Server& s, RunEnd& end) {
  std::size_t room = room_of(s);
  Client* const begin = s.clients.data();
  for (const auto& [from, to] : {std::pair(s.first, begin + s.clients.size()), std::pair(begin, s.first)}) {
    for (Client* client = from; client != to; ++client) {
      std::byte* const slot = client->slot;
      if (!is_request(slot)) {
        if (kPolicy.pipelined() && !look_in_vain<kPolicy>(node, s, end)) return false;
        continue;
      }
      if (room-- == 0) [[unlikely]] {
        ++s.blocked;
        s.first = client;
        return end_pass<kPolicy>(node, s, end);
      }
      if (kPolicy.pipelined()) s.empty_looks = 0;
      if (!take_from_slot<kPolicy>(node, s, *client, slot, end)) [[unlikely]]
        return false;
    }
  }
  return end_pass<kPolicy>(node, s, end);
}

// Takes what client `c` wrote again into the retry slot whose word is at `at`.
template <ServerPolicy kPolicy, Node N>
inline bool take_retry(N& node, Server& s, std::uint32_t c, std::byte* at, RunEnd& end) {
  const std::uint64_t number = retried(load_word<std::uint64_t>(at));
  store_word<std::uint64_t>(at, 0);
  Client& client = s.clients[c];
  if (number > client.next) {  // all before the oldest that waits were answered
    ++s.strange;
    return true;
  }
  s.empty_looks = 0;
  const bool before = number < client.next;
  if (!before) {  // the request itself is there, or was lost: it comes no more
    leave_slot(s, client, client.slot);
  }
  const Source source{.client = &client, .number = number, .end = at, .length = length_before(at)};
  return work<kPolicy>(node, s, collect<kPolicy>(s, before ? executed(source) : source), end);
}

// Whether this pass looks at the bell.
template <ServerPolicy kPolicy>
inline bool bell_is_due(Server& s) {
  if (!kPolicy.pipelined()) return true;
  if (--s.passes_to_bell != 0) return false;
  s.passes_to_bell = kPassesToBell;
  return true;
}

// The requests that clients wrote again, when somebody has rung.
template <ServerPolicy kPolicy, Node N>
inline bool serve_retries(N& node, Server& s, RunEnd& end) {
  const auto bell = load_word<std::uint64_t>(s.bell_word);
  if (bell == s.bell) [[likely]]
    return true;
  std::size_t room = room_of(s);
  for (std::uint32_t c = 0; c < s.clients.size(); ++c) {
    for (std::uint32_t r = 0; r < s.places.window; ++r) {
      std::byte* const at = s.region + s.places.retry_word(s.thread, c, r);
      if (!is_retry(load_word<std::uint64_t>(at))) continue;
      if (room-- == 0) return end_pass<kPolicy>(node, s, end);  // the bell rings still
      if (!take_retry<kPolicy>(node, s, c, at, end)) return false;
    }
  }
  s.bell = bell;
  return end_pass<kPolicy>(node, s, end);
}

// Takes a request that came by SEND, for which there is room in the send queues; work() follows. Null: it gets no
// response.
template <ServerPolicy kPolicy>
inline Item* take_message(Server& s, const Message& message) {
  RecvLane& lane = s.recvs[recv_queue(message.recv)];
  ++lane.consumed;
  const std::uint32_t c = tagged(message.immediate);
  const std::uint64_t bytes = message.bytes - kGrh.value;
  const bool put = bytes == put_bytes(s.places.value);
  if (c >= s.clients.size() || (bytes != kGetBytes && !put)) {
    ++s.strange;
    return nullptr;
  }
  Client& client = s.clients[c];
  const std::uint64_t number = tagged_number(message.immediate, client.next);
  if (number > client.next) return nullptr;  // one before it was lost: the client will ask again for that first
  const bool before = number < client.next;
  if (!before) ++client.next;
  const Source source{.client = &client,
                      .number = number,
                      .end = lane.payloads + recv_place(message.recv) * lane.stride + bytes,
                      .length = static_cast<std::uint16_t>(put ? s.places.value : 0)};
  return &collect<kPolicy>(s, before ? executed(source) : source);
}

// Takes what has completed, responses and requests by SEND, and answers as many requests as the send queues have room
// for. Returns how many completions there were, or -1 with `end` set.
template <ServerPolicy kPolicy, Node N>
inline int serve_messages(N& node, Server& s, RunEnd& end) {
  const int count = take_completions<kRateBatch>(s.cq, kRateBatch, end, [&s](const ibv_wc& wc) {
    if (is_send_id(wc.wr_id)) {
      retire_signaled(s.queues[sent_queue(wc.wr_id)]);
    } else {
      s.waiting[s.tail++] = {wc.wr_id, be32toh(wc.imm_data), wc.byte_len};
    }
  });
  if (count < 0) return -1;
  for (std::size_t room = room_of(s); s.head != s.tail && room > 0; ++s.head) {
    Item* const item = take_message<kPolicy>(s, s.waiting[s.head]);
    if (item == nullptr) continue;
    --room;
    if (!work<kPolicy>(node, s, *item, end)) return -1;
  }
  if (s.head != s.tail) ++s.blocked;
  if (!end_pass<kPolicy>(node, s, end) || !give_back_recvs(s.recvs, end)) return -1;
  return count;
}

// One pass. Returns whether completions came too; -1: a failure.
template <ServerPolicy kPolicy, Node N>
inline int serve(N& node, Server& s, RunEnd& end) {
  if constexpr (!kPolicy.pipelined()) {
    if (!s.recvs.empty()) {
      if (s.measured) ++s.counts.looks;
      return serve_messages<kPolicy>(node, s, end);
    }
  }
  const bool bell = bell_is_due<kPolicy>(s);
  node.look(s.clients.size() + (bell ? 1 : 0));
  if (s.measured) s.counts.looks += s.clients.size();
  if (bell && !serve_retries<kPolicy>(node, s, end)) return -1;
  if (!serve_slots<kPolicy>(node, s, end)) return -1;
  return reap_responses(s.cq, s.queues, end);
}

// Calls use.operator()<kPolicy>() for the way of the thread, which is an echo or not.
template <bool kEcho, class Use>
inline auto dispatch_of(ServerPolicy policy, Use&& use) {
  constexpr ServerPolicy kPipeline{Prefetching::pipeline, false, kEcho};
  constexpr ServerPolicy kBatch{Prefetching::batch, false, kEcho}, kBatchInLists{Prefetching::batch, true, kEcho};
  constexpr ServerPolicy kOff{Prefetching::off, false, kEcho}, kOffInLists{Prefetching::off, true, kEcho};
  if (policy.pipelined()) return use.template operator()<kPipeline>();
  if (policy.prefetch == Prefetching::batch) {
    return policy.batching ? use.template operator()<kBatchInLists>() : use.template operator()<kBatch>();
  }
  return policy.batching ? use.template operator()<kOffInLists>() : use.template operator()<kOff>();
}
template <class Use>
inline auto dispatch(ServerPolicy policy, Use&& use) {
  return policy.echo ? dispatch_of<true>(policy, use) : dispatch_of<false>(policy, use);
}

// One pass, which is counted if it is measured. Returns as serve() does.
template <ServerPolicy kPolicy, Node N>
inline int serve_and_count(N& node, Server& s, RunEnd& end) {
  s.batches = s.measured ? &s.counts.passes.batches : nullptr;
  const std::uint64_t served_before = s.served, blocked_before = s.blocked;
  const int completed = serve<kPolicy>(node, s, end);
  if (s.measured) {
    const std::uint64_t served = s.served - served_before;
    s.counts.served += served;
    if constexpr (!kPolicy.batching) s.batches->lists[1] += served;
    count_pass(s.counts.passes, served, s.recvs.empty() ? s.clients.size() : s.max_batch, s.blocked - blocked_before);
  }
  return completed;
}

// One pass, as server_loop() wants it: something moves while requests are under way, or until the bell was looked at.
template <ServerPolicy kPolicy, Node N>
inline int pass(N& node, Server& s, RunEnd& end) {
  const std::uint64_t before = s.served;
  const int completed = serve_and_count<kPolicy>(node, s, end);
  if (completed != 0 || s.served > before || s.under_way() > 0) return completed < 0 ? -1 : 1;
  if (s.passes_to_bell == kPassesToBell) return 0;
  s.passes_to_bell = 1;
  return 1;
}

// Watches the memory that clients write to.
template <Node N>
inline void watch(N& node, const Server& s) {
  if (!s.recvs.empty()) return;
  node.watch(s.region + s.places.polled_begin(s.thread), s.places.polled_bytes());
  node.watch(s.bell_word, kLine);
}

}  // namespace verbscope::herd
