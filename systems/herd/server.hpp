// The data path of a thread of HERD's server (region.hpp says how it meets the clients): it looks for requests, works
// on several at a time so that the latency of memory is hidden, and answers by datagram.
//
// Three ways (Prefetching). off: a request is executed when it is found. pipeline (SIGCOMM 2014, section 4.1.1): a
// request is executed in two steps, each begun by the arrival of the next: its bucket is asked for when it is taken,
// its item when the next one is, and it is executed and answered when one more is; after kPollsToNoOp looks in a row
// that found nothing, a no-op takes the place of the next, so that nobody waits for ever. batch (Kalia et al., ATC
// 2016, section 4.3.1): what a pass has found, at most max_batch, goes through three loops: buckets asked for, items
// asked for, executed.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "lookups/mica_store.hpp"
#include "microbench/loop/recv_loop.hpp"
#include "systems/answers/queue.hpp"
#include "systems/herd/region.hpp"
#include "systems/store/options.hpp"

namespace verbscope::herd {

using lookups::MicaStore;

// After so many looks in a row that found nothing a no-op is pushed (SIGCOMM 2014, section 4.1.1).
inline constexpr std::uint32_t kPollsToNoOp = 100;

// A thread's view of one client.
struct alignas(kLine) Client {
  std::uint64_t next = 0;          // number of the request that comes next
  std::byte* slot = nullptr;       // the end of the slot that it comes to
  std::byte* last_slot = nullptr;  // the end of the last of the client's slots
  ibv_ah* ah = nullptr;            // where its responses go
  std::uint32_t qpn = 0;
  std::uint32_t qkey = 0;
  std::uint32_t port = 0;
  std::uint32_t node = 0;
};

// A request that was taken and is not answered yet.
struct Item {
  static constexpr std::uint32_t kNoOp = 0xffffffff;
  std::uint32_t client = kNoOp;
  std::uint16_t length = 0;  // of a PUT's value; 0: a GET
  bool executed = false;     // a PUT that was executed before: it is answered again
  std::uint64_t number = 0;
  KeyHash key;
  const std::byte* value = nullptr;
  MicaStore::Found found;  // what the index had for the key, once the bucket was read
};

// Where a request is that is taken: the end of its bytes, and the length of its value.
struct Source {
  std::uint32_t client = 0;
  std::uint64_t number = 0;
  bool executed = false;
  const std::byte* end = nullptr;
  std::uint16_t length = 0;

  KeyHash key() const {  // a message by SEND ends anywhere
    KeyHash key;
    std::memcpy(&key, end - kKeyBytes, sizeof key);
    return key;
  }
};

// A thread's counts of the measured window.
struct ServerCounts {
  WorkerCounts passes;
  std::uint64_t served = 0;  // requests answered
  std::uint64_t looks = 0;   // at slots, or for completions
  std::uint64_t no_ops = 0;
};

struct Server {
  ibv_cq* cq = nullptr;
  std::span<AnswerQueue> queues;
  std::span<AnswerPort> ports;
  std::span<Client> clients;
  std::span<std::uint64_t> answered;  // responses to each client machine
  MicaStore* store = nullptr;
  std::size_t item_bytes = 0;      // of an item in the store's log
  std::uint32_t inline_bytes = 0;  // of a response that is inlined
  std::uint32_t thread = 0;
  Prefetching prefetch = Prefetching::off;
  bool batching = false;        // responses of a pass go behind one doorbell a port
  std::uint32_t max_batch = 1;  // requests that are worked on at a time, and responses behind one doorbell

  // Requests by WRITE.
  std::byte* region = nullptr;
  RequestRegion places;
  std::uint64_t slot_bytes = 0;
  std::uint64_t wrap = 0;   // bytes from the first slot of a client to the last
  std::uint64_t bell = 0;   // what the bell word was last
  std::uint32_t first = 0;  // client at which a pass begins
  // Requests by SEND.
  std::span<RecvLane> recvs;

  std::array<Item, BatchCounts::kLongest> items{};  // of the pass; pipeline: the first two
  std::size_t count = 0;
  std::size_t older = 0;          // pipeline: the place of the older of the two
  std::size_t most = 1;           // requests that are collected before they are executed
  std::size_t room = 0;           // requests that the pass may take yet, for which there is room in the send queues
  std::uint32_t empty_looks = 0;  // in a row
  std::uint64_t served = 0;       // responses, in the whole run
  std::uint64_t puts = 0;         // executed
  std::uint64_t strange = 0;      // requests that no client of the run sends
  std::uint64_t blocked = 0;      // times that a pass ended because a send queue was full
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

  bool pipelined() const { return prefetch == Prefetching::pipeline; }
};

// The lines of an item: asked for, or read. Of long ones the adapter of the core's caches asks for the rest by itself.
template <class Visit>
inline void each_line(const std::byte* item, std::size_t bytes, Visit&& visit) {
  visit(item);
  const std::byte* const second = item + kLine - reinterpret_cast<std::uintptr_t>(item) % kLine;
  if (second < item + bytes) visit(second);
}

// Step 2: the bucket is read, and the item that it names asked for.
template <Node N>
inline void ask_for_item(N& node, const Server& s, Item& item) {
  node.load(s.store->bucket_place(item.key));
  item.found = s.store->find(item.key);
  if (!item.found.any()) return;
  each_line(s.store->place_of(item.found), s.item_bytes, [&node](const std::byte* line) { node.prefetch(line); });
}

// Step 3: the request is executed, and `response` is what its client gets.
template <Node N>
inline void execute(N& node, Server& s, const Item& item, const Client& client, ibv_send_wr& response) {
  if (item.found.any()) {
    each_line(s.store->place_of(item.found), s.item_bytes, [&node](const std::byte* line) { node.load(line); });
  }
  ibv_sge& body = *response.sg_list;
  std::size_t bytes = kStatusBytes;
  if (item.length == 0) {
    s.store->get(item.key, item.found, reinterpret_cast<std::byte*>(body.addr), bytes);
  } else if (!item.executed) {
    s.store->put(item.key, {item.value, item.length});
    ++s.puts;
  }
  body.length = static_cast<std::uint32_t>(bytes);
  response.send_flags = bytes <= s.inline_bytes ? unsigned{IBV_SEND_INLINE} : 0u;
  response.wr.ud.ah = client.ah;
  response.wr.ud.remote_qpn = client.qpn;
  response.wr.ud.remote_qkey = client.qkey;
  response.imm_data = htobe32(tag_of(s.thread, item.number));
  ++s.answered[client.node];
  ++s.served;
}

// A response that goes by itself, on the next of its port's queues in turn.
struct LoneResponse {
  AnswerQueue* queue = nullptr;
  ibv_send_wr* request = nullptr;
};
template <Node N>
inline LoneResponse execute_alone(N& node, Server& s, const Item& item) {
  const Client& client = s.clients[item.client];
  AnswerPort& port = s.ports[client.port];
  AnswerQueue& queue = port.current();
  port.advance();
  ibv_send_wr& response = next_request(queue);
  execute(node, s, item, client, response);
  return {&queue, &response};
}
inline bool post_alone(Server& s, const LoneResponse& response, RunEnd& end) {
  if (s.measured) s.counts.passes.batches.count(1);
  return post_one(response.queue->lane, *response.request, response.queue->index, end);
}

inline void read_source(Item& item, const Source& source) {
  item.client = source.client;
  item.length = source.length;
  item.executed = source.executed;
  item.number = source.number;
  item.key = source.key();
  item.value = source.end - kKeyBytes - kLengthBytes - source.length;
}

// A step of the pipeline: the request at `source`, or with null a no-op, pushes those before it on. Last comes the
// post, during which what was asked for arrives.
template <Node N>
inline bool push(N& node, Server& s, const Source* source, RunEnd& end) {
  if (source != nullptr) {
    node.prefetch(s.store->bucket_place(source->key()));
    ++s.count;
  }
  Item& older = s.items[s.older];
  LoneResponse response;
  if (older.client != Item::kNoOp) {
    --s.count;
    response = execute_alone(node, s, older);
  }
  s.older ^= 1;
  Item& younger = s.items[s.older];
  if (younger.client != Item::kNoOp) ask_for_item(node, s, younger);
  if (source != nullptr) {
    read_source(older, *source);
  } else {
    older.client = Item::kNoOp;
  }
  return response.request == nullptr || post_alone(s, response, end);
}

// Executes and answers the requests that were collected.
template <Node N>
inline bool flush(N& node, Server& s, RunEnd& end) {
  const std::span<Item> items = std::span(s.items).first(std::exchange(s.count, 0));
  if (s.prefetch == Prefetching::batch) {
    for (const Item& item : items) node.prefetch(s.store->bucket_place(item.key));
    for (Item& item : items) ask_for_item(node, s, item);
  }
  for (Item& item : items) {
    if (s.prefetch == Prefetching::off) ask_for_item(node, s, item);
    if (s.batching) {
      const Client& client = s.clients[item.client];
      AnswerQueue& queue = s.ports[client.port].current();
      ibv_send_wr& response = next_request(queue);
      execute(node, s, item, client, response);
      add_answer(queue.lane, queue.list, response);
    } else if (!post_alone(s, execute_alone(node, s, item), end)) {
      return false;
    }
  }
  return !s.batching || post_all(s.ports, s.max_batch, s.measured ? &s.counts.passes.batches : nullptr, end);
}

// Settles how many requests may be taken: each has a place for its response, whichever queue of its port that goes to.
inline void count_room(Server& s) {
  std::uint32_t room = s.queues.front().lane.room;
  for (const AnswerQueue& queue : s.queues) room = std::min(room, queue.lane.room);
  s.room = room <= s.count ? 0 : room - s.count;
  s.most = s.batching || s.prefetch == Prefetching::batch ? s.max_batch : 1;
}

// Takes the request at `source`; there is room for its response.
template <bool kPipelined, Node N>
inline bool take(N& node, Server& s, const Source& source, RunEnd& end) {
  --s.room;
  s.empty_looks = 0;
  if constexpr (kPipelined) return push(node, s, &source, end);
  read_source(s.items[s.count++], source);
  return s.count < s.most || flush(node, s, end);
}

// The client's next request was taken.
inline void advance(const Server& s, Client& client) {
  ++client.next;
  client.slot = client.slot == client.last_slot ? client.slot - s.wrap : client.slot + s.slot_bytes;
}

// What was collected, and is not executed yet, waits for nothing more.
template <Node N>
inline bool end_pass(N& node, Server& s, RunEnd& end) {
  return s.pipelined() || s.count == 0 || flush(node, s, end);
}

// The slot that ends at `end` is empty, but for a PUT's value, which stays until the response is there.
inline void clear_slot(std::byte* end) {
  std::memset(end - kKeyBytes - kLengthBytes, 0, kKeyBytes + kLengthBytes);
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
      if (!take<kPipelined>(node, s, source, end)) return false;
      clear_slot(slot);
      advance(s, client);
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
