// The data path of a thread of HERD's server: where it finds requests (executor.hpp: what it does with them).
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/ring.hpp"
#include "systems/herd/executor.hpp"
#include "systems/requests/server.hpp"
#include "systems/store/cache.hpp"

namespace verbscope::herd {

// After this many empty slots in a row a no-op enters the pipeline (SIGCOMM 2014, section 4.1.1).
inline constexpr std::uint32_t kPollsToNoOp = 100;
// A thread with a pipeline polls its bell once in this many passes, and before it sleeps. In each pass the bell would
// cost a thread with one client as much as that client's slot, and delay the no-ops.
inline constexpr std::uint32_t kPassesToBell = 16;

// A request by SEND that has arrived.
struct Message {
  std::uint64_t recv = 0;  // wr_id of its RECV
  std::uint32_t immediate = 0;
  std::uint32_t bytes = 0;
};

struct Server : Executor {
  // Requests by WRITE.
  std::uint32_t passes_to_bell = kPassesToBell;  // if equal: this pass polled the bell
  std::uint32_t empty_slots = 0;                 // in a row
  // Requests by SEND.
  std::span<RecvLane> recvs;
  Ring<Message> waiting;             // requests that wait for room in the send queues; has room for all RECVs
  std::uint64_t head = 0, tail = 0;  // positions in `waiting`

  CacheServerCounts counts;

  void begin_interval() { counts = {}; }

  template <Node N>
  void watch(N& node) const {
    if (recvs.empty()) SlotServer::watch(node);
  }
};

// A request that was executed before: a PUT is not executed again.
inline Source executed(Source source) {
  if (source.length != 0) source.length = Source::kExecuted;
  return source;
}

// Takes the client's next request from its slot.
template <ServerPolicy kPolicy, Node N>
[[gnu::always_inline]] inline bool take_from_slot(N& node, Server& s, Client& client, std::byte* slot, RunEnd& end) {
  Item& item =
      collect<kPolicy>(s, {.client = &client, .number = client.next, .end = slot, .length = length_before(slot)});
  leave_slot(s, client, slot);
  return work<kPolicy>(node, s, item, end);
}

// Counts an empty slot, and pushes a no-op after kPollsToNoOp of them.
template <ServerPolicy kPolicy, Node N>
inline bool note_empty_slot(N& node, Server& s, RunEnd& end) {
  if (++s.empty_slots < kPollsToNoOp || s.under_way() == 0) return true;
  s.empty_slots = 0;
  if (s.measured) ++s.counts.no_ops;
  return push_on<kPolicy>(node, s, *s.youngest, end);
}

// One pass over the slots: one request of each client. False: a post failed.
template <ServerPolicy kPolicy, Node N>
inline bool serve_slots(N& node, Server& s, RunEnd& end) {
  std::size_t room = room_of(s);
  bool posted = true;
  poll_slots(
      s,
      [&](Client & client, std::byte * slot) __attribute__((always_inline)) {
        if (room-- == 0) [[unlikely]] {
          s.blocked = 1;  // the pass does not look for more
          s.first = &client;
          return false;
        }
        if (kPolicy.pipelined()) s.empty_slots = 0;
        return posted = take_from_slot<kPolicy>(node, s, client, slot, end);
      },
      [&] { return !kPolicy.pipelined() || (posted = note_empty_slot<kPolicy>(node, s, end)); });
  return posted && end_pass<kPolicy>(node, s, end);
}

// Whether this pass polls the bell.
template <ServerPolicy kPolicy>
inline bool bell_is_due(Server& s) {
  if (!kPolicy.pipelined()) return true;
  if (--s.passes_to_bell != 0) return false;
  s.passes_to_bell = kPassesToBell;
  return true;
}

// Serves the requests that clients wrote again.
template <ServerPolicy kPolicy, Node N>
inline bool serve_retries(N& node, Server& s, RunEnd& end) {
  std::size_t room = room_of(s);
  const auto has_room = [&](const Client&) { return room > 0 && room-- > 0; };
  const auto take = [&](Client& client, std::uint64_t number, const std::byte* at, bool repeated) {
    s.empty_slots = 0;
    const Source source{.client = &client, .number = number, .end = at, .length = length_before(at)};
    return work<kPolicy>(node, s, collect<kPolicy>(s, repeated ? executed(source) : source), end);
  };
  return poll_retries(s, has_room, take) && end_pass<kPolicy>(node, s, end);
}

// Takes a request by SEND, for which there is room in the send queues; work() follows. Null: no response.
template <ServerPolicy kPolicy>
inline Item* take_message(Server& s, const Message& message) {
  RecvLane& lane = s.recvs[recv_queue(message.recv)];
  ++lane.consumed;
  const std::uint32_t c = tagged(message.immediate);
  const std::uint64_t bytes = message.bytes - kGrh.value;
  const bool put = bytes == put_bytes(s.value);
  if (c >= s.clients.size() || (bytes != kGetBytes && !put)) {
    ++s.unknown;
    return nullptr;
  }
  Client& client = s.clients[c];
  const std::uint64_t number = tagged_number(message.immediate, client.next);
  if (number > client.next) return nullptr;  // one before it was lost: the client will resend that first
  const bool before = number < client.next;
  if (!before) ++client.next;
  const Source source{.client = &client,
                      .number = number,
                      .end = lane.payloads + recv_place(message.recv) * lane.stride + bytes,
                      .length = static_cast<std::uint16_t>(put ? s.value : 0)};
  return &collect<kPolicy>(s, before ? executed(source) : source);
}

// Takes completions of responses and requests by SEND, and answers as many requests as the send queues have room for.
// Returns the number of completions, or -1 with `end` set.
template <ServerPolicy kPolicy, Node N>
inline int serve_messages(N& node, Server& s, RunEnd& end) {
  const int count = reap<kRateBatch>(s.cq, s.queues, end, [&s](const ibv_wc& wc) {
    s.waiting[s.tail++] = {wc.wr_id, be32toh(wc.imm_data), wc.byte_len};
    return true;
  });
  if (count < 0) return -1;
  for (std::size_t room = room_of(s); s.head != s.tail && room > 0; ++s.head) {
    Item* const item = take_message<kPolicy>(s, s.waiting[s.head]);
    if (item == nullptr) continue;
    --room;
    if (!work<kPolicy>(node, s, *item, end)) return -1;
  }
  s.blocked += s.tail - s.head;
  if (!end_pass<kPolicy>(node, s, end) || !give_back_recvs(s.recvs, s.queues, end)) return -1;
  return count;
}

// One pass. Returns the number of completions, or -1 with `end` set.
template <ServerPolicy kPolicy, Node N>
inline int serve(N& node, Server& s, RunEnd& end) {
  if constexpr (!kPolicy.pipelined()) {
    if (!s.recvs.empty()) {
      if (s.measured) ++s.counts.looks;
      return serve_messages<kPolicy>(node, s, end);
    }
  }
  const bool bell = bell_is_due<kPolicy>(s);
  node.poll_memory(s.clients.size() + (bell ? 1 : 0));
  if (s.measured) s.counts.looks += s.clients.size();
  if (bell && !serve_retries<kPolicy>(node, s, end)) return -1;
  if (!serve_slots<kPolicy>(node, s, end)) return -1;
  return reap_responses(s.cq, s.queues, end);
}

// Calls use.operator()<kPolicy>() with the policy of the thread.
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

// One pass, counted if it is measured. Returns as serve() does.
template <ServerPolicy kPolicy, Node N>
inline int serve_and_count(N& node, Server& s, RunEnd& end) {
  s.batches = s.measured ? &s.counts.passes.batches : nullptr;
  const std::uint64_t served_before = s.served;
  s.blocked = 0;
  const int completed = serve<kPolicy>(node, s, end);
  if (s.measured) {
    const std::uint64_t served = s.served - served_before;
    s.counts.served += served;
    if constexpr (!kPolicy.batching) s.batches->count(1, served);
    count_pass(s.counts.passes, served, s.recvs.empty() ? s.clients.size() : most_of_a_pass(s), s.blocked);
  }
  return completed;
}

// One pass of server_loop(). It reports a move while requests are in execution, or until the bell was polled.
template <ServerPolicy kPolicy, Node N>
inline int pass(N& node, Server& s, RunEnd& end) {
  const std::uint64_t before = s.served;
  const int completed = serve_and_count<kPolicy>(node, s, end);
  if (completed != 0 || s.served > before || s.under_way() > 0) return completed < 0 ? -1 : 1;
  if (s.passes_to_bell == kPassesToBell) return 0;
  s.passes_to_bell = 1;
  return 1;
}

// Without clients, on the null device: before each pass the thread writes requests into its own slots, and its
// responses go nowhere. This measures the server's loop.

// Requests, prebuilt: the bytes of each end at `last + index * stride`.
struct Feed {
  std::byte* last = nullptr;
  std::uint64_t stride = 0;
  std::span<const std::uint32_t> bytes;  // of each request
  std::size_t next = 0;
};

// Writes the next request into each empty slot that a pass will poll. Not inlined, so that its cost is not counted as
// the loop's.
[[gnu::noinline]] inline void feed_slots(Server& s, Feed& feed) {
  for (std::uint32_t c = 0; c < s.clients.size(); ++c) {
    std::byte* const slot = s.clients[c].slot;
    if (is_request(slot)) continue;
    const std::uint32_t bytes = feed.bytes[feed.next];
    std::memcpy(slot - bytes, feed.last + feed.next * feed.stride - bytes, bytes);
    feed.next = feed.next + 1 == feed.bytes.size() ? 0 : feed.next + 1;
  }
}

template <ServerPolicy kPolicy, Node N>
void serve_self_fed(N& node, Server& s, Feed& feed, std::uint64_t goal, const RunControl& control, ThreadTally& tally) {
  MeasuredInterval interval(tally, goal);
  for (;;) {
    feed_slots(s, feed);
    begin_pass(s, control);
    if (serve_and_count<kPolicy>(node, s, tally.end) < 0) return;
    tally.done_ops.store(s.served, std::memory_order_relaxed);
    if (interval.see(node, control.phase.load(std::memory_order_relaxed), s.served)) return;
  }
}

}  // namespace verbscope::herd
