// The data path of a thread of the cached store's server (message.hpp: the protocol): it executes and answers the
// requests of a pass, and prefetches the memory of all of them first.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/ring.hpp"
#include "systems/cached/message.hpp"
#include "systems/requests/peers.hpp"
#include "systems/requests/server.hpp"
#include "systems/store/cache.hpp"
#include "systems/store/workload.hpp"

namespace verbscope::cached {

using lookups::MicaStore;

// A client as a thread of the server sees it.
struct Client : ResponseTarget {
  std::uint64_t next = 0;  // number of the next request
};

enum class Kind : std::uint8_t { get, known_get, put, put_again };

// A message that was taken, and whose RECV is in use until it is answered.
struct Item {
  Client* client = nullptr;  // null: no response
  KeyHash key{};
  const std::byte* end = nullptr;  // of its bytes
  std::uint32_t immediate = 0;     // of the response
  Kind kind = Kind::get;
  std::uint32_t queue = 0;   // of its RECV
  MicaStore::Found found{};  // what the index had for the key, once the bucket was read
};

// It works on up to max_batch requests at a time.
struct Server : RequestServer {
  std::span<RecvLane> recvs;  // the receive queues of the same QPs
  std::span<Client> clients;
  MicaStore* store = nullptr;
  std::size_t second_line = 0;     // second_line_of its items
  std::uint32_t value = 0;         // bytes
  std::uint32_t inline_bytes = 0;  // of a response that is inlined
  std::uint32_t tags = 0;          // those of the thread's responses: tag_of(thread, 0)
  bool prefetch = true;
  // Small keys: the sender by QP, and the hashes of keys. Null if requests name both.
  const QpIndex* qps = nullptr;
  const StoreWorkload* workload = nullptr;

  Ring<Item> waiting;                // has room for all RECVs
  std::uint64_t head = 0, tail = 0;  // positions in `waiting`
  std::uint64_t puts = 0;            // executed
  CacheServerCounts counts;

  void begin_interval() { counts = {}; }
};

// Reads a request that names its client and its number into `item`; its bytes end at `end`.
inline void read_numbered(Server& s, Item& item, std::uint32_t tag, const std::byte* end, std::uint32_t bytes) {
  if (tagged(tag) >= s.clients.size()) {
    ++s.unknown;
    return;
  }
  Client& client = s.clients[tagged(tag)];
  const std::uint64_t number = tagged_number(tag, client.next);
  if (number > client.next) return;  // one before it was lost: the client will resend both
  const bool first = number == client.next;
  const bool put = bytes == put_bytes(s.value) && length_of(end) == s.value;
  const bool get = (bytes == kGetBytes || bytes == kKnownGetBytes) && length_of(end) == 0;
  if (!put && !get) {  // the bytes of a resent request may be overwritten once it is answered
    s.unknown += first ? 1 : 0;
    return;
  }
  if (first) ++client.next;
  item.client = &client;
  item.key = key_of(end);
  item.end = end;
  item.immediate = s.tags + static_cast<std::uint32_t>(number % kTagNumbers);
  item.kind = put ? (first ? Kind::put : Kind::put_again) : (bytes == kKnownGetBytes ? Kind::known_get : Kind::get);
}

// Reads a request that is only an immediate.
inline void read_row(Server& s, Item& item, const ibv_wc& wc, std::uint32_t row) {
  const std::uint32_t from = s.qps->find(wc);
  if (from == QpIndex::kNotFound || table_in(row) != kTable) {
    ++s.unknown;
    return;
  }
  item.client = &s.clients[from];
  item.key = s.workload->hash(key_in(row));
  item.immediate = row;
}

inline void take_message(Server& s, const ibv_wc& wc) {
  Item& item = s.waiting[s.tail++] = {.queue = recv_queue(wc.wr_id)};
  const std::uint32_t immediate = be32toh(wc.imm_data);
  if (s.qps != nullptr) return read_row(s, item, wc, immediate);
  const RecvLane& lane = s.recvs[item.queue];
  const std::byte* const end = lane.payloads + recv_place(wc.wr_id) * lane.stride + wc.byte_len - kGrh.value;
  read_numbered(s, item, immediate, end, wc.byte_len - static_cast<std::uint32_t>(kGrh.value));
}

// Makes `response` one of `bytes` bytes; 0: header-only.
inline void address(const Server& s, const Item& item, ibv_send_wr& response, std::uint32_t bytes) {
  response.num_sge = bytes > 0 ? 1 : 0;
  address_response(response, *item.client, bytes, bytes > 0 && bytes <= s.inline_bytes, item.immediate);
}

// Whether the version in a GET is that of the value.
inline bool is_current(const Item& item, std::span<const std::byte> value) {
  return item.kind == Kind::known_get &&
         std::memcmp(item.end - kKnownGetBytes, value.data() + value.size() - kVersionBytes, kVersionBytes) == 0;
}

// Executes the request, and fills `response`.
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

// Executes and answers the requests that wait, up to position `until`. Returns how many, or -1 with `end` set.
template <Node N>
inline int answer_waiting(N& node, Server& s, std::uint64_t until, RunEnd& end) {
  const auto each = [&s, until](auto&& use) {
    for (std::uint64_t n = s.head; n != until; ++n) {
      if (s.waiting[n].client != nullptr) use(s.waiting[n]);
    }
  };
  const auto find = [&](Item& item) { find_and_prefetch(node, *s.store, item.key, s.second_line, item.found); };
  if (s.prefetch) {
    each([&](const Item& item) { node.prefetch(s.store->bucket_place(item.key)); });
    each(find);
  }
  int answers = 0;
  bool posted = true;
  each([&](Item& item) {
    if (!s.prefetch) find(item);
    ResponsePort& port = *item.client->port;
    SendQueue& queue = s.batching ? port.current() : port.take_turn();
    execute(node, s, item, *queue.next);
    if (s.batching) {
      append_next(queue);
    } else {
      posted = posted && post_next(queue, end);
    }
    ++answers;
  });
  for (; s.head != until; ++s.head) ++s.recvs[s.waiting[s.head].queue].consumed;
  BatchCounts* const batches = s.measured ? &s.counts.passes.batches : nullptr;
  if (s.batching) {
    posted = post_all(s.ports, s.max_batch, batches, end);
  } else if (s.measured) {
    batches->count(1, static_cast<std::uint64_t>(answers));
  }
  return posted ? answers : -1;
}

// One pass. Returns how many completions and responses there were, or -1 with `end` set.
template <Node N>
inline int serve(N& node, Server& s, RunEnd& end) {
  const auto take = [&s](const ibv_wc& wc) {
    take_message(s, wc);
    return true;
  };
  const int completed = reap<kRateBatch>(s.cq, s.queues, end, take, s.max_batch);
  if (completed < 0) return -1;
  const std::uint64_t most = std::min<std::uint64_t>(least_room(s.queues), s.max_batch);
  const int answers = answer_waiting(node, s, s.head + std::min(s.tail - s.head, most), end);
  if (answers < 0 || !give_back_recvs(s.recvs, s.queues, end)) return -1;
  s.served += static_cast<std::uint64_t>(answers);
  if (s.measured) {
    ++s.counts.looks;
    s.counts.served += static_cast<std::uint64_t>(answers);
    count_pass(s.counts.passes, static_cast<std::uint64_t>(answers), most_of_a_pass(s), s.tail - s.head);
  }
  return completed + answers;
}

}  // namespace verbscope::cached
