// A thread of HERD's server executes the requests that it has taken, several at a time to hide the latency of memory,
// and answers by datagram.
//
// Prefetching has three settings. off: a request is executed when it is found. pipeline (SIGCOMM 2014, section 4.1.1):
// a request prefetches its bucket when it is taken, its item when the next one is taken, and is executed and answered
// when one more is taken. After kPollsToNoOp empty slots in a row a no-op takes the place of the next request, so that
// no request waits for ever. batch (Kalia et al., ATC 2016, section 4.3.1): the requests of a pass, up to max_batch, go
// through three loops: prefetch buckets, prefetch items, execute.
//
// An echo (ServerPolicy::echo, message.hpp) reads several places of memory, one after the other, instead: at once; in a
// pipeline with one step per place, each of which reads a place and prefetches the next; or for all requests of a batch
// in turn, one place each.
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
#include "systems/herd/message.hpp"
#include "systems/requests/request_slots.hpp"
#include "systems/store/cache.hpp"
#include "systems/store/options.hpp"

namespace verbscope::herd {

using lookups::MicaStore;

inline constexpr std::size_t kMaxItems = BatchCounts::kLongest;  // requests in execution at a time

// The options that the loop of a thread is compiled for.
struct ServerPolicy {
  Prefetching prefetch = Prefetching::off;
  bool batching = false;  // responses of a pass go behind one doorbell a port
  bool echo = false;      // requests are echoed instead of executed

  constexpr bool pipelined() const { return prefetch == Prefetching::pipeline; }
};

using Client = SlotClient;

// An arrived request: the end of its bytes, and the length of its value.
struct Source {
  static constexpr std::uint16_t kExecuted = 0xffff;

  Client* client = nullptr;
  std::uint64_t number = 0;
  const std::byte* end = nullptr;
  std::uint16_t length = 0;  // 0: a GET; kExecuted: a PUT that was executed before and is only answered again

  KeyHash key() const {  // a message by SEND ends anywhere
    KeyHash key;
    std::memcpy(&key, end - kKeyBytes, sizeof key);
    return key;
  }
};

// A request that was taken and is not answered yet.
struct Item {
  Client* client = nullptr;  // null: a no-op
  KeyHash key;
  const std::byte* end = nullptr;  // of a PUT's bytes
  std::uint32_t tag = 0;           // of the response
  std::uint16_t length = 0;        // of Source
  MicaStore::Found found;          // the index entry of the key, after the bucket was read
  Item* before = nullptr;          // pipeline: the request taken before this one
};
static_assert(sizeof(Item) == kCacheLine.value);

// The walks of an echo's requests in execution.
struct Walks {
  EchoRule rule;
  const lookups::Chain* chain = nullptr;          // null: no reads
  std::array<std::uint32_t, kMaxItems> places{};  // where each of Executor::items is
  std::size_t in_pipeline = 0;                    // requests
};

// The requests in execution.
struct Executor : SlotServer {
  static constexpr std::size_t kCleared = kLengthBytes + kKeyBytes;

  Executor() {
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i].before = &steps[(i + 1) % steps.size()];
  }
  Executor(const Executor&) = delete;  // items are identified by their addresses

  std::uint32_t value = 0;  // bytes
  MicaStore* store = nullptr;
  std::size_t second_line = 0;     // second_line_of() its items
  std::uint32_t inline_bytes = 0;  // largest response that is inlined
  std::uint32_t tags = 0;          // those of the thread's responses: tag_of(thread, 0)
  ServerPolicy policy;
  BatchCounts* batches = nullptr;  // counts posts if they are measured

  std::array<Item, kMaxItems> items{};  // collected; those in the pipeline of an echo
  Item* free = items.data();            // after the collected ones
  std::array<Item, 3> steps{};          // of the pipeline: the oldest is still needed while the youngest is filled
  Item* youngest = &steps[0];
  std::uint64_t puts = 0;  // executed
  Walks walks;

  // There is no store: requests walk along `chain`, which is null if they read nothing. In the pipeline there is one
  // request per step of the chain, and the youngest.
  void prepare_echo(const EchoRule& rule, const lookups::Chain* chain) {
    walks.rule = rule;
    walks.chain = chain;
    const std::size_t ring = rule.accesses + std::size_t{1};
    for (std::size_t i = 0; i < ring; ++i) items[i].before = &items[(i + 1) % ring];
    if (policy.pipelined()) youngest = items.data();
  }
  std::size_t collected() const { return static_cast<std::size_t>(free - items.data()); }
  // Requests that were taken and are not answered.
  std::size_t under_way() const {
    const auto taken = [](const Item& item) { return item.client != nullptr; };
    return collected() + walks.in_pipeline + static_cast<std::size_t>(std::ranges::count_if(steps, taken));
  }
};

// Step 2: reads the bucket, and prefetches the item.
template <Node N>
[[gnu::always_inline]] inline void ask_for_item(N& node, const Executor& s, Item& item) {
  find_and_prefetch(node, *s.store, item.key, s.second_line, item.found);
}

// Makes `response` one of `bytes` bytes to the item's client.
[[gnu::always_inline]] inline void address(const Executor& s, const Item& item, Client& client, ibv_send_wr& response,
                                           std::uint32_t bytes) {
  address_response(response, client, bytes, bytes <= s.inline_bytes, item.tag);
}

// Step 3: executes the request, and fills `response`.
template <Node N>
[[gnu::always_inline]] inline void execute(N& node, Executor& s, const Item& item, Client& client,
                                           ibv_send_wr& response) {
  load_item(node, item.found.item, s.second_line);
  if (item.length == 0) [[likely]] {
    if (const std::byte* const hit = s.store->hit(item.key, item.found); hit != nullptr) [[likely]] {
      const std::span<const std::byte> value = MicaStore::value_in(hit);
      address(s, item, client, response, static_cast<std::uint32_t>(value.size()));
      std::memcpy(reinterpret_cast<void*>(response.sg_list->addr), value.data(), value.size());
      return;
    }
  } else if (item.length != Source::kExecuted) {
    s.store->put(item.key, {item.end - kKeyBytes - kLengthBytes - item.length, item.length});
    ++s.puts;
  }
  address(s, item, client, response, kStatusBytes);
}

// Fills `response` with the value of the item's request, whose walk ended at `place`.
[[gnu::always_inline]] inline void send_back(const Executor& s, const Item& item, Client& client, ibv_send_wr& response,
                                             std::uint32_t place) {
  address(s, item, client, response, s.value);
  auto* const bytes = reinterpret_cast<std::byte*>(response.sg_list->addr);
  std::memcpy(bytes, item.end - put_bytes(s.value), s.value);
  mask_echo(bytes, place);
}

// A step of the pipeline: the youngest request, whose bucket is being prefetched, or a no-op advances those before it.
// The post is last, so that the prefetches overlap with it.
template <Node N>
[[gnu::always_inline]] inline bool push(N& node, Executor& s, Item& youngest, RunEnd& end) {
  Item& younger = *youngest.before;
  Item& older = *younger.before;
  s.youngest = &older;
  Client* const client = std::exchange(older.client, nullptr);
  if (client == nullptr) [[unlikely]] {
    if (younger.client != nullptr) ask_for_item(node, s, younger);
    return true;
  }
  SendQueue& queue = client->port->take_turn();
  ++s.served;
  execute(node, s, older, *client, *queue.next);
  if (younger.client != nullptr) [[likely]]
    ask_for_item(node, s, younger);
  return post_next(queue, end);
}

// A step of an echo's pipeline: each request reads its prefetched place and prefetches the next; the oldest reads its
// last place and is answered. `youngest` has prefetched its first place, or is a no-op.
template <Node N>
inline bool push_walks(N& node, Executor& s, Item& youngest, RunEnd& end) {
  Walks& walks = s.walks;
  const auto read_place = [&](const Item& item, std::uint32_t step) -> std::uint32_t {
    std::uint32_t& place = walks.places[static_cast<std::size_t>(&item - s.items.data())];
    node.load(walks.chain->place(place));
    return place = walks.chain->follow(place, step);
  };
  const std::uint32_t last = walks.chain->depth() - 1;
  Item* item = youngest.before;
  for (std::uint32_t step = 0; step < last; ++step, item = item->before) {
    if (item->client != nullptr) node.prefetch(walks.chain->place(read_place(*item, step)));
  }
  s.youngest = item;
  Client* const client = std::exchange(item->client, nullptr);
  if (client == nullptr) return true;
  --walks.in_pipeline;
  ++s.served;
  SendQueue& queue = client->port->take_turn();
  send_back(s, *item, *client, *queue.next, read_place(*item, last));
  return post_next(queue, end);
}

// A step of the policy's pipeline.
template <ServerPolicy kPolicy, Node N>
[[gnu::always_inline]] inline bool push_on(N& node, Executor& s, Item& youngest, RunEnd& end) {
  if constexpr (kPolicy.echo) {
    return push_walks(node, s, youngest, end);
  } else {
    return push(node, s, youngest, end);
  }
}

// Reads all places of the collected requests of an echo.
template <ServerPolicy kPolicy, Node N>
inline void walk(N& node, Walks& walks, std::size_t items) {
  if (walks.chain == nullptr) return;
  const std::span<std::uint32_t> places(walks.places.data(), items);
  if constexpr (kPolicy.prefetch == Prefetching::batch) {
    walks.chain->find_group(node, places, places.data());
  } else {
    for (std::uint32_t& place : places) place = walks.chain->find(node, place);
  }
}

// Executes and answers the requests that were collected.
template <ServerPolicy kPolicy, Node N>
inline bool flush(N& node, Executor& s, RunEnd& end) {
  const std::span<Item> items(s.items.data(), std::exchange(s.free, s.items.data()));
  if constexpr (kPolicy.echo) {
    walk<kPolicy>(node, s.walks, items.size());
  } else if constexpr (kPolicy.prefetch == Prefetching::batch) {
    for (const Item& item : items) node.prefetch(s.store->bucket_place(item.key));
    for (Item& item : items) ask_for_item(node, s, item);
  }
  for (Item& item : items) {
    if constexpr (kPolicy.prefetch == Prefetching::off && !kPolicy.echo) ask_for_item(node, s, item);
    ResponsePort& port = *item.client->port;
    SendQueue& queue = kPolicy.batching ? port.current() : port.take_turn();
    if constexpr (kPolicy.echo) {
      send_back(s, item, *item.client, *queue.next, s.walks.places[static_cast<std::size_t>(&item - items.data())]);
    } else {
      execute(node, s, item, *item.client, *queue.next);
    }
    if constexpr (kPolicy.batching) {
      append_next(queue);
    } else {
      if (!post_next(queue, end)) return false;
    }
  }
  s.served += items.size();
  return !kPolicy.batching || post_all(s.ports, s.max_batch, s.batches, end);
}

// How many requests may be taken: each needs room for its response on any queue of its port.
inline std::size_t room_of(const Executor& s) {
  const std::size_t room = least_room(s.queues);
  return room - std::min(room, s.under_way());
}

// Takes the request at `source`, for which there is room; work() follows.
template <ServerPolicy kPolicy>
[[gnu::always_inline]] inline Item& collect(Executor& s, const Source& source) {
  Item& item = kPolicy.pipelined() ? *s.youngest : *s.free++;
  item.client = source.client;
  item.end = source.end;
  item.key = source.key();
  item.tag = s.tags + source.number % kTagNumbers;
  item.length = source.length;
  return item;
}

// After `item` was taken: a step of the pipeline, or the execution of the collected requests when there are enough.
template <ServerPolicy kPolicy, Node N>
[[gnu::always_inline]] inline bool work(N& node, Executor& s, Item& item, RunEnd& end) {
  if constexpr (kPolicy.echo) {
    std::uint32_t& place = s.walks.places[static_cast<std::size_t>(&item - s.items.data())];
    place = s.walks.rule.start(item.key);
    if constexpr (kPolicy.pipelined()) {
      ++s.walks.in_pipeline;
      node.prefetch(s.walks.chain->place(place));
    }
  } else if constexpr (kPolicy.pipelined()) {
    node.prefetch(s.store->bucket_place(item.key));
  }
  if constexpr (kPolicy.pipelined()) return push_on<kPolicy>(node, s, item, end);
  constexpr bool kCollects = kPolicy.batching || kPolicy.prefetch == Prefetching::batch;
  return (kCollects && s.collected() < s.max_batch) || flush<kPolicy>(node, s, end);
}

// Executes the requests that are still collected.
template <ServerPolicy kPolicy, Node N>
inline bool end_pass(N& node, Executor& s, RunEnd& end) {
  return kPolicy.pipelined() || s.collected() == 0 || flush<kPolicy>(node, s, end);
}

}  // namespace verbscope::herd
