// The data path of a thread of HERD's server (region.hpp says how it meets the clients): it looks for requests, works on
// several at a time so that the latency of memory is hidden, and answers by datagram.
//
// Three ways (Prefetching). off: a request is executed when it is found. pipeline (SIGCOMM 2014, section 4.1.1): a request
// is executed in two steps, each begun by the arrival of the next: its bucket is asked for when it is taken, its item
// when the next one is, and it is executed and answered when one more is; after kPollsToNoOp looks in a row that found
// nothing, a no-op takes the place of the next, so that nobody waits for ever. batch (Kalia et al., ATC 2016, section
// 4.3.1): what a pass has found, at most max_batch, goes through three loops: buckets asked for, items asked for,
// executed.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "lookups/mica_store.hpp"
#include "microbench/loop/recv_loop.hpp"
#include "systems/answers/queue.hpp"
#include "systems/herd/region.hpp"
#include "systems/store/options.hpp"

namespace verbscope::herd {

using lookups::MicaEnd;
using lookups::MicaStore;

// After so many looks in a row that found nothing a no-op is pushed (SIGCOMM 2014, section 4.1.1).
inline constexpr std::uint32_t kPollsToNoOp = 100;

// A thread's view of one client.
struct Client {
  std::uint64_t next = 0;  // number of the request that comes next
  ibv_send_wr to{};        // where its responses go: wr.ud
  std::uint32_t port = 0;
  std::uint32_t node = 0;
};

// A request that was taken and is not answered yet.
struct Item {
  static constexpr std::uint32_t kNoOp = 0xffffffff;
  std::uint32_t client = kNoOp;
  bool executed = false;  // a PUT that was executed before: it is answered again
  std::uint64_t number = 0;
  RequestView request;
  const std::byte* place = nullptr;  // of the item, where the index names one
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
  std::size_t item_bytes = 0;  // of an item in the store's log
  std::uint32_t thread = 0;
  Prefetching prefetch = Prefetching::off;
  bool batching = false;        // responses of a pass go behind one doorbell a port
  std::uint32_t max_batch = 1;  // requests that are worked on at a time, and responses behind one doorbell

  // Requests by WRITE.
  std::byte* region = nullptr;
  RequestRegion places;
  std::uint64_t bell = 0;   // what the bell word was last
  std::uint32_t first = 0;  // client at which a pass begins
  // Requests by SEND.
  std::span<RecvLane> recvs;

  std::array<Item, BatchCounts::kLongest> items{};  // pipeline: the first two; otherwise those of this pass
  std::size_t count = 0;
  std::uint32_t empty_looks = 0;  // in a row
  std::uint64_t served = 0;       // responses, in the whole run
  std::uint64_t puts = 0;         // executed
  std::uint64_t strange = 0;      // requests that no client of the run sends
  std::uint64_t blocked = 0;      // times that a pass ended because a send queue was full
  bool measured = false;
  ServerCounts counts;

  bool pipelined() const { return prefetch == Prefetching::pipeline; }
};

// The lines of an item: asked for, or read. Of long ones the adapter of the core's caches asks for the rest by itself.
template <class Visit>
inline void each_line(const std::byte* item, std::size_t bytes, Visit&& visit) {
  visit(item);
  const std::byte* const second = item + kLine - reinterpret_cast<std::uintptr_t>(item) % kLine;
  if (second < item + bytes) visit(second);
}

// Step 1: the bucket is asked for.
template <Node N>
inline void ask_for_bucket(N& node, const Server& s, const Item& item) {
  node.prefetch(s.store->bucket_place(item.request.key));
}

// Step 2: the bucket is read, and the item that it names asked for.
template <Node N>
inline void ask_for_item(N& node, const Server& s, Item& item) {
  node.load(s.store->bucket_place(item.request.key));
  item.place = s.store->item_place(item.request.key);
  if (item.place != nullptr) {
    each_line(item.place, s.item_bytes, [&node](const std::byte* line) { node.prefetch(line); });
  }
}

// Step 3: the request is executed, and its response is the last of its queue's list.
template <Node N>
inline void execute(N& node, Server& s, const Item& item) {
  if (item.place != nullptr) {
    each_line(item.place, s.item_bytes, [&node](const std::byte* line) { node.load(line); });
  }
  Client& client = s.clients[item.client];
  ibv_send_wr& response = append(s.ports[client.port].current());
  response.num_sge = 0;
  if (item.request.length > 0) {
    if (!item.executed) {
      s.store->put(item.request.key, {item.request.value, item.request.length});
      ++s.puts;
    }
  } else {
    std::size_t length = 0;
    ibv_sge& body = *response.sg_list;
    if (s.store->get(item.request.key, reinterpret_cast<std::byte*>(body.addr), length) == MicaEnd::hit) {
      body.length = static_cast<std::uint32_t>(length);
      response.num_sge = 1;
    }
  }
  response.wr.ud = client.to.wr.ud;
  response.imm_data = htobe32(tag_of(s.thread, item.number));
  ++s.answered[client.node];
  ++s.served;
}

// Posts the response that was made last by itself.
inline bool post_single(Server& s, std::uint32_t client, RunEnd& end) {
  AnswerPort& port = s.ports[s.clients[client].port];
  AnswerQueue& queue = port.current();
  port.advance();
  return post_answers(queue, 1, s.measured ? &s.counts.passes.batches : nullptr, end);
}

// Pushes `item` into the pipeline: the one before it moves on, the one before that is executed and answered. The first
// place is that of the younger.
template <Node N>
inline bool push(N& node, Server& s, const Item& item, RunEnd& end) {
  if (item.client != Item::kNoOp) ask_for_bucket(node, s, item);
  Item& younger = s.items[0];
  Item& older = s.items[1];
  const std::uint32_t answers = older.client;
  if (answers != Item::kNoOp) execute(node, s, older);
  if (younger.client != Item::kNoOp) ask_for_item(node, s, younger);
  s.count += std::size_t{item.client != Item::kNoOp} - std::size_t{answers != Item::kNoOp};
  older = younger;
  younger = item;
  return answers == Item::kNoOp || post_single(s, answers, end);
}

// Executes and answers the requests that were collected.
template <Node N>
inline bool flush(N& node, Server& s, RunEnd& end) {
  const std::span<Item> items = std::span(s.items).first(std::exchange(s.count, 0));
  if (s.prefetch == Prefetching::batch) {
    for (const Item& item : items) ask_for_bucket(node, s, item);
    for (Item& item : items) ask_for_item(node, s, item);
  }
  for (Item& item : items) {
    if (s.prefetch == Prefetching::off) ask_for_item(node, s, item);
    execute(node, s, item);
    if (!s.batching && !post_single(s, item.client, end)) return false;
  }
  return post_all(s.ports, s.max_batch, s.measured ? &s.counts.passes.batches : nullptr, end);
}

// Requests that may be taken until the next flush: each has a place for its response, whichever queue that goes to.
inline std::size_t free_places(const Server& s) {
  std::uint32_t room = s.queues.front().lane.room;
  for (const AnswerQueue& queue : s.queues) room = std::min(room, queue.lane.room);
  const std::size_t most = s.pipelined() ? 1 : s.batching || s.prefetch == Prefetching::batch ? s.max_batch : 1;
  const std::size_t taken = s.pipelined() ? s.count : 0;
  return room <= taken ? 0 : std::min<std::size_t>(most, room - taken);
}

// Takes a request of `client`, for which there is a place.
template <Node N>
inline bool take(N& node, Server& s, const Item& item, std::size_t& places, RunEnd& end) {
  Client& client = s.clients[item.client];
  client.next = std::max(client.next, item.number + 1);
  s.empty_looks = 0;
  if (s.pipelined()) {
    if (!push(node, s, item, end)) return false;
    places = free_places(s);
    return true;
  }
  s.items[s.count++] = item;
  if (--places > 0) return true;
  if (!flush(node, s, end)) return false;
  places = free_places(s);
  return true;
}

// So many looks in a row found nothing: in time, a no-op moves the pipeline on.
template <Node N>
inline bool found_nothing(N& node, Server& s, RunEnd& end) {
  if (!s.pipelined() || ++s.empty_looks < kPollsToNoOp || s.count == 0) [[likely]]
    return true;
  s.empty_looks = 0;
  if (s.measured) ++s.counts.no_ops;
  return push(node, s, Item(), end);
}

// What was collected, and is not executed yet, waits for nothing more.
template <Node N>
inline bool end_pass(N& node, Server& s, RunEnd& end) {
  return s.pipelined() || s.count == 0 || flush(node, s, end);
}

// Takes the request from the slot that ends at `end_of_slot`, and leaves it empty but for a PUT's value, which stays
// until the response is there.
inline RequestView take_slot(std::byte* end_of_slot) {
  const RequestView request = read_request(end_of_slot);
  std::memset(end_of_slot - kKeyBytes - kLengthBytes, 0, kKeyBytes + kLengthBytes);
  return request;
}

// One pass over the slots: one of each client. False: a post failed.
template <Node N>
inline bool serve_slots(N& node, Server& s, RunEnd& end) {
  const auto count = static_cast<std::uint32_t>(s.clients.size());
  std::size_t places = free_places(s);
  std::uint32_t c = s.first;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (places == 0) [[unlikely]] {
      ++s.blocked;
      break;
    }
    std::byte* const slot = s.region + s.places.slot_end(s.thread, c, s.clients[c].next);
    if (load_word<std::uint64_t>(slot - kWord) != 0) {
      const std::uint64_t number = s.clients[c].next;
      if (!take(node, s, {.client = c, .number = number, .request = take_slot(slot)}, places, end)) return false;
    } else if (!found_nothing(node, s, end)) {
      return false;
    }
    c = c + 1 == count ? 0 : c + 1;
  }
  s.first = c;
  return end_pass(node, s, end);
}

// Takes what client `c` wrote again into the retry slot whose word is at `at`.
template <Node N>
inline bool take_retry(N& node, Server& s, std::uint32_t c, std::byte* at, std::size_t& places, RunEnd& end) {
  const std::uint64_t number = load_word<std::uint64_t>(at) - 1;
  store_word<std::uint64_t>(at, 0);
  Client& client = s.clients[c];
  if (number > client.next) {  // all before the oldest that waits were answered
    ++s.strange;
    return true;
  }
  const bool before = number < client.next;
  // The request itself is there, or was lost: it comes no more.
  if (!before) take_slot(s.region + s.places.slot_end(s.thread, c, number));
  return take(node, s, {.client = c, .executed = before, .number = number, .request = read_request(at)}, places, end);
}

// The requests that clients wrote again, when somebody has rung.
template <Node N>
inline bool serve_retries(N& node, Server& s, RunEnd& end) {
  const auto bell = load_word<std::uint64_t>(s.region + s.places.bell(s.thread));
  if (bell == s.bell) [[likely]]
    return true;
  std::size_t places = free_places(s);
  for (std::uint32_t c = 0; c < s.clients.size(); ++c) {
    for (std::uint32_t r = 0; r < s.places.window; ++r) {
      std::byte* const at = s.region + s.places.retry_word(s.thread, c, r);
      if (load_word<std::uint64_t>(at) == 0) continue;
      if (places == 0) return end_pass(node, s, end);  // the bell rings still
      if (!take_retry(node, s, c, at, places, end)) return false;
    }
  }
  s.bell = bell;
  return end_pass(node, s, end);
}

// Takes the request that a RECV has brought, from a client that asks by SEND.
template <Node N>
inline bool take_message(N& node, Server& s, const ibv_wc& wc, std::size_t& places, RunEnd& end) {
  RecvLane& lane = s.recvs[recv_queue(wc.wr_id)];
  ++lane.consumed;
  const std::uint32_t tag = be32toh(wc.imm_data);
  const std::uint32_t c = tagged(tag);
  const std::uint64_t bytes = wc.byte_len - kGrh.value;
  if (c >= s.clients.size() || (bytes != kGetBytes && bytes != put_bytes(s.places.value))) {
    ++s.strange;
    return true;
  }
  const std::uint64_t next = s.clients[c].next, number = tagged_number(tag, next);
  if (number > next || places == 0) return true;  // the client will ask again, for the one before it first
  const std::byte* const at = lane.payloads + recv_place(wc.wr_id) * lane.stride + wc.byte_len;
  Item item{.client = c, .executed = number < next, .number = number, .request = read_request(at)};
  if (bytes == kGetBytes) item.request.length = 0;
  return take(node, s, item, places, end);
}

// Takes what has completed: requests by SEND, and responses. Returns how many, or -1 with `end` set.
template <Node N>
inline int serve_messages(N& node, Server& s, RunEnd& end) {
  std::size_t places = free_places(s);
  if (places == 0) ++s.blocked;
  const int count = take_completions<kRateBatch>(s.cq, std::max<std::size_t>(places, 1), end, [&](const ibv_wc& wc) {
    if (!is_send_id(wc.wr_id)) return take_message(node, s, wc, places, end);
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
  if (!serve_retries(node, s, end) || !serve_slots(node, s, end)) return -1;
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
