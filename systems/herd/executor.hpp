// What a thread of HERD's server does with the requests that it has taken: it works on several at a time, so that the
// latency of memory is hidden, and answers by datagram.
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
#include "systems/answers/queue.hpp"
#include "systems/herd/region.hpp"
#include "systems/store/options.hpp"

namespace verbscope::herd {

using lookups::MicaStore;

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

// The requests under way, and where they are executed and answered.
struct Executor {
  std::span<AnswerQueue> queues;
  std::span<AnswerPort> ports;
  std::span<Client> clients;
  std::span<std::uint64_t> answered;  // responses to each client machine
  MicaStore* store = nullptr;
  std::size_t item_bytes = 0;      // of an item in the store's log
  std::uint32_t inline_bytes = 0;  // of a response that is inlined
  std::uint32_t thread = 0;
  Prefetching prefetch = Prefetching::off;
  bool batching = false;           // responses of a pass go behind one doorbell a port
  std::uint32_t max_batch = 1;     // requests that are worked on at a time, and responses behind one doorbell
  BatchCounts* batches = nullptr;  // counts posts, where they are measured

  std::array<Item, BatchCounts::kLongest> items{};  // of the pass; pipeline: the first two
  std::size_t count = 0;
  std::size_t older = 0;     // pipeline: the place of the older of the two
  std::size_t most = 1;      // requests that are collected before they are executed
  std::size_t room = 0;      // requests that the pass may take yet, for which there is room in the send queues
  std::uint64_t served = 0;  // responses, in the whole run
  std::uint64_t puts = 0;    // executed

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
inline void ask_for_item(N& node, const Executor& s, Item& item) {
  node.load(s.store->bucket_place(item.key));
  item.found = s.store->find(item.key);
  if (!item.found.any()) return;
  each_line(s.store->place_of(item.found), s.item_bytes, [&node](const std::byte* line) { node.prefetch(line); });
}

// Step 3: the request is executed, and `response` is what its client gets.
template <Node N>
inline void execute(N& node, Executor& s, const Item& item, const Client& client, ibv_send_wr& response) {
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
inline LoneResponse execute_alone(N& node, Executor& s, const Item& item) {
  const Client& client = s.clients[item.client];
  AnswerPort& port = s.ports[client.port];
  AnswerQueue& queue = port.current();
  port.advance();
  ibv_send_wr& response = next_request(queue);
  execute(node, s, item, client, response);
  return {&queue, &response};
}
inline bool post_alone(Executor& s, const LoneResponse& response, RunEnd& end) {
  if (s.batches != nullptr) s.batches->count(1);
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
inline bool push(N& node, Executor& s, const Source* source, RunEnd& end) {
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
inline bool flush(N& node, Executor& s, RunEnd& end) {
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
  return !s.batching || post_all(s.ports, s.max_batch, s.batches, end);
}

// Settles how many requests may be taken: each has a place for its response, whichever queue of its port that goes to.
inline void count_room(Executor& s) {
  std::uint32_t room = s.queues.front().lane.room;
  for (const AnswerQueue& queue : s.queues) room = std::min(room, queue.lane.room);
  s.room = room <= s.count ? 0 : room - s.count;
  s.most = s.batching || s.prefetch == Prefetching::batch ? s.max_batch : 1;
}

// Keeps the request at `source`, for which there is room, until flush().
inline void collect(Executor& s, const Source& source) {
  --s.room;
  read_source(s.items[s.count++], source);
}

// Executes what was collected when it is as many as are wanted.
template <Node N>
inline bool flush_when_full(N& node, Executor& s, RunEnd& end) {
  return s.count < s.most || flush(node, s, end);
}

// What was collected, and is not executed yet, waits for nothing more.
template <Node N>
inline bool end_pass(N& node, Executor& s, RunEnd& end) {
  return s.pipelined() || s.count == 0 || flush(node, s, end);
}

}  // namespace verbscope::herd
