// The data path of a thread of the cached store's server (message.hpp says how it meets the clients): what a pass finds
// is executed, with the memory of all of it asked for before, and answered.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "systems/answers/message_recvs.hpp"
#include "systems/answers/qp_book.hpp"
#include "systems/answers/queue.hpp"
#include "systems/cached/message.hpp"
#include "systems/store/cache.hpp"
#include "systems/store/cache_steps.hpp"
#include "systems/store/workload.hpp"

namespace verbscope::cached {

using lookups::MicaStore;

// A thread's view of one client.
struct Client {
  std::uint64_t next = 0;              // number of the request that comes next
  decltype(ibv_send_wr{}.wr.ud) to{};  // where its responses go
  AnswerPort* port = nullptr;          // the port that goes there
  std::uint64_t answered = 0;          // responses
  std::uint32_t node = 0;
};

enum class Kind : std::uint8_t { get, known_get, put, put_again };

// A request that was taken and is not answered yet.
struct Item {
  Client* client = nullptr;
  KeyHash key;
  const std::byte* end = nullptr;  // of its bytes
  std::uint32_t immediate = 0;     // of the response
  Kind kind = Kind::get;
  MicaStore::Found found{};  // what the index had for the key, once the bucket was read
};

struct Server {
  ibv_cq* cq = nullptr;
  std::span<AnswerQueue> queues;
  std::span<AnswerPort> ports;
  std::span<RecvLane> recvs;  // the receive queues of the same QPs
  std::span<Client> clients;
  MicaStore* store = nullptr;
  std::size_t second_line = 0;     // second_line_of its items
  std::uint32_t value = 0;         // bytes
  std::uint32_t inline_bytes = 0;  // of a response that is inlined
  std::uint32_t tags = 0;          // those of the thread's responses: tag_of(thread, 0)
  bool prefetch = true;
  bool batching = false;        // responses of a pass go behind one doorbell a port
  std::uint32_t max_batch = 1;  // requests that are worked on at a time, and responses behind one doorbell
  // Small keys: who asks, and the hashes of keys. Null where requests name both.
  const QpBook* book = nullptr;
  const StoreWorkload* workload = nullptr;

  std::array<Item, BatchCounts::kLongest> items{};  // of the pass
  std::size_t taken = 0;
  std::uint64_t served = 0;   // responses, in the whole run
  std::uint64_t puts = 0;     // executed
  std::uint64_t strange = 0;  // requests that no client of the run sends
  bool measured = false;
  CacheServerCounts counts;
};

// Takes a request that names its client and its number, whose bytes end at `end`.
inline void take_numbered(Server& s, std::uint32_t tag, const std::byte* end, std::uint32_t bytes) {
  if (tagged(tag) >= s.clients.size()) {
    ++s.strange;
    return;
  }
  Client& client = s.clients[tagged(tag)];
  const std::uint64_t number = tagged_number(tag, client.next);
  if (number > client.next) return;  // one before it was lost: the client will ask again for both
  const bool first = number == client.next;
  const bool put = bytes == put_bytes(s.value) && length_of(end) == s.value;
  const bool get = (bytes == kGetBytes || bytes == kKnownGetBytes) && length_of(end) == 0;
  if (!put && !get) {  // what is sent again may be overwritten, once it has had its response
    s.strange += first ? 1 : 0;
    return;
  }
  if (first) ++client.next;
  const Kind kind = get ? (bytes == kKnownGetBytes ? Kind::known_get : Kind::get) : first ? Kind::put : Kind::put_again;
  s.items[s.taken++] = {.client = &client,
                        .key = key_of(end),
                        .end = end,
                        .immediate = s.tags + static_cast<std::uint32_t>(number % kTagNumbers),
                        .kind = kind};
}

// Takes a request that is an immediate alone.
inline void take_row(Server& s, const ibv_wc& wc, std::uint32_t row) {
  const std::uint32_t from = s.book->find(wc);
  if (from == QpBook::kNobody || table_in(row) != kTable) {
    ++s.strange;
    return;
  }
  s.items[s.taken++] = {.client = &s.clients[from], .key = s.workload->hash(key_in(row)), .immediate = row};
}

inline void take_message(Server& s, const ibv_wc& wc, std::size_t room) {
  RecvLane& lane = s.recvs[recv_queue(wc.wr_id)];
  ++lane.consumed;
  if (s.taken == room) return;  // no place for its response: the client will ask again
  const std::uint32_t immediate = be32toh(wc.imm_data);
  if (s.book != nullptr) {
    take_row(s, wc, immediate);
  } else {
    const std::byte* const end = lane.payloads + recv_place(wc.wr_id) * lane.stride + wc.byte_len;
    take_numbered(s, immediate, end, wc.byte_len - static_cast<std::uint32_t>(kGrh.value));
  }
}

// Makes `response` one of the first so many bytes at its place; 0: of headers alone.
inline void address(const Server& s, const Item& item, ibv_send_wr& response, std::uint32_t bytes) {
  response.num_sge = bytes > 0 ? 1 : 0;
  response.sg_list->length = bytes;
  response.send_flags = bytes > 0 && bytes <= s.inline_bytes ? unsigned{IBV_SEND_INLINE} : 0u;
  response.wr.ud = item.client->to;
  response.imm_data = htobe32(item.immediate);
  ++item.client->answered;
}

// Whether the version that a GET was asked with is that of the value.
inline bool is_current(const Item& item, std::span<const std::byte> value) {
  return item.kind == Kind::known_get &&
         std::memcmp(item.end - kKnownGetBytes, value.data() + value.size() - kVersionBytes, kVersionBytes) == 0;
}

// The request is executed, and `response` is what its client gets.
template <Node N>
inline void execute(N& node, Server& s, const Item& item, ibv_send_wr& response) {
  load_item(node, item.found.item, s.second_line);
  if (item.kind == Kind::put || item.kind == Kind::put_again) {
    if (item.kind == Kind::put) {
      s.store->put(item.key, {item.end - put_bytes(s.value), item_bytes(s.value)});
      ++s.puts;
    }
    return address(s, item, response, 0);
  }
  const std::byte* const hit = s.store->hit(item.key, item.found);
  if (hit == nullptr) return address(s, item, response, kStatusBytes);
  const std::span<const std::byte> value = MicaStore::value_in(hit);
  if (is_current(item, value)) return address(s, item, response, 0);
  address(s, item, response, static_cast<std::uint32_t>(value.size()));
  std::memcpy(reinterpret_cast<void*>(response.sg_list->addr), value.data(), value.size());
}

// Executes and answers what was taken.
template <Node N>
inline bool answer_taken(N& node, Server& s, RunEnd& end) {
  const std::span<Item> items(s.items.data(), s.taken);
  const auto find = [&](Item& item) { item.found = find_and_prefetch(node, *s.store, item.key, s.second_line); };
  if (s.prefetch) {
    for (const Item& item : items) node.prefetch(s.store->bucket_place(item.key));
    for (Item& item : items) find(item);
  }
  for (Item& item : items) {
    if (!s.prefetch) find(item);
    AnswerPort& port = *item.client->port;
    if (s.batching) {
      execute(node, s, item, *port.current().next);
      append(port.current());
    } else {
      AnswerQueue& queue = port.take_turn();
      execute(node, s, item, *queue.next);
      if (!post_next(queue, end)) return false;
    }
  }
  s.served += items.size();
  BatchCounts& batches = s.counts.passes.batches;
  if (s.batching) return post_all(s.ports, s.max_batch, s.measured ? &batches : nullptr, end);
  if (s.measured) batches.lists[1] += items.size();
  return true;
}

// One pass. Returns how many completions there were, or -1 with `end` set.
template <Node N>
inline int serve(N& node, Server& s, RunEnd& end) {
  const std::size_t room = least_room(s.queues);
  s.taken = 0;
  const std::size_t most = std::clamp<std::size_t>(room, 1, s.max_batch);
  const int count = take_completions<kRateBatch>(s.cq, most, end, [&](const ibv_wc& wc) {
    if (is_send_id(wc.wr_id)) {
      retire_signaled(s.queues[sent_queue(wc.wr_id)].lane);
    } else {
      take_message(s, wc, room);
    }
  });
  if (count < 0 || !answer_taken(node, s, end) || !give_back_recvs(s.recvs, end)) return -1;
  if (s.measured) {
    ++s.counts.looks;
    s.counts.served += s.taken;
    count_pass(s.counts.passes, s.taken, s.max_batch, room == 0 ? 1 : 0);
  }
  return count;
}

// Serves until told to quit; never waits for more requests than there are.
template <Node N>
void server_loop(N& node, Server& s, const RunControl& control, ThreadTally& tally) {
  for (;;) {
    const bool measured = in_window(control.phase.load(std::memory_order_relaxed));
    if (measured && !s.measured) s.counts = {};
    s.measured = measured;
    const int completed = serve(node, s, tally.end);
    if (completed < 0) return;
    if (s.taken > 0) {
      tally.done_ops.store(s.served, std::memory_order_relaxed);
    } else if (completed == 0) {
      if (must_give_up(control, tally.end)) return;
      node.relax();
    }
  }
}

}  // namespace verbscope::cached
