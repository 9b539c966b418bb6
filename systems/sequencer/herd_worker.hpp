// The data path of a worker of `sequencer --design herd` (herd_places.hpp says how the two ends meet).
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "systems/rpc/server.hpp"
#include "systems/sequencer/herd_places.hpp"

namespace verbscope {

// A worker's view of one client.
struct HerdClient : ResponseTarget {
  std::uint64_t next = 0;   // number of the request that comes next
  std::uint64_t retry = 0;  // what its retry slot held last
};

struct HerdWorker : RequestServer {
  std::span<HerdClient> clients;
  std::span<ibv_send_wr*> collected;  // room for an answer to each client
  std::uint64_t* counter = nullptr;
  std::byte* region = nullptr;
  HerdPlaces places;
  std::uint32_t worker = 0;
  std::size_t count = 0;      // requests collected in this pass
  std::uint64_t blocked = 0;  // requests left in this pass because a send queue was full
  std::uint32_t first = 0;    // client at which a pass begins: the first that was left so
  std::uint64_t bell = 0;     // what the bell word held last
  PassCounts counts;

  void begin_interval() { counts = {}; }

  template <Node N>
  void watch(N& node) const {
    node.watch(region + places.bell(worker), places.block_bytes());
  }
};

// Takes request `number` of client `c` as one of this pass. False: its port's queue is full.
inline bool collect(HerdWorker& s, std::uint32_t c, std::uint64_t number) {
  HerdClient& client = s.clients[c];
  SendQueue& queue = client.port->current();
  if (queue.room == 0) {
    if (s.blocked++ == 0) s.first = c;
    return false;
  }
  ibv_send_wr& answer = append_next(queue);
  answer.wr.ud = client.to;
  answer.imm_data = htobe32(tag_of(s.worker, number));
  s.collected[s.count++] = &answer;
  client.next = std::max(client.next, number + 1);
  ++client.answered;
  return true;
}

// Gives what was collected its values, by one atomic add for all, and posts it.
template <Node N>
inline bool answer(N& node, HerdWorker& s, RunEnd& end) {
  std::uint64_t value = node.fetch_add(*s.counter, s.count);
  for (ibv_send_wr* wr : s.collected.first(s.count)) {
    std::memcpy(reinterpret_cast<void*>(wr->sg_list->addr), &value, sizeof value);
    ++value;
  }
  s.served += s.count;
  s.count = 0;
  return post_all(s.ports, s.max_batch, s.measured ? &s.counts.batches : nullptr, end);
}

// One pass over the clients: at most one request of each, which `serve(c)` collects. Who was left when the room ended
// comes first in the next, so that nobody waits for ever. False: a post failed.
template <Node N, class Serve>
inline bool serve_clients(N& node, HerdWorker& s, RunEnd& end, Serve&& serve) {
  node.look(s.clients.size());
  const auto count = static_cast<std::uint32_t>(s.clients.size());
  const std::uint32_t first = s.first;
  for (std::uint32_t i = 0; i < count; ++i) {
    serve(first + i < count ? first + i : first + i - count);
    if (!s.batching && s.count > 0 && !answer(node, s, end)) return false;
  }
  return s.count == 0 || answer(node, s, end);
}

// Serves the requests that clients wrote into their slots.
template <Node N>
inline bool serve_slots(N& node, HerdWorker& s, RunEnd& end) {
  return serve_clients(node, s, end, [&s](std::uint32_t c) {
    const std::uint64_t next = s.clients[c].next;
    std::byte* const slot = s.region + s.places.slot(s.worker, c, next);
    if (load_word<std::uint64_t>(slot) == request_word(next)) collect(s, c, next);
  });
}

// Serves the requests that clients wrote into their retry slots, when somebody has rung.
template <Node N>
inline bool serve_retries(N& node, HerdWorker& s, RunEnd& end) {
  const auto bell = load_word<std::uint64_t>(s.region + s.places.bell(s.worker));
  if (bell == s.bell) [[likely]]
    return true;
  bool all = true;
  const bool posted = serve_clients(node, s, end, [&s, &all](std::uint32_t c) {
    HerdClient& client = s.clients[c];
    const auto word = load_word<std::uint64_t>(s.region + s.places.retry(s.worker, c));
    if (word == client.retry) return;
    const std::uint64_t number = word % kRetryNumbers - 1;
    // A retry of a later request tells nothing: the one before it will be asked for again first.
    if (number > client.next || collect(s, c, number)) {
      client.retry = word;
    } else {
      all = false;
    }
  });
  if (all) s.bell = bell;
  return posted;
}

// One pass over retries and slots: retries first, for who asks again has waited longest. Returns as server_loop()
// wants.
template <Node N>
inline int serve(N& node, HerdWorker& s, RunEnd& end) {
  s.blocked = 0;
  const std::uint64_t before = s.served;
  if (!serve_retries(node, s, end) || !serve_slots(node, s, end)) return -1;
  const int completed = reap_responses(s.cq, s.queues, end);
  if (completed < 0) return -1;
  if (s.measured) count_pass(s.counts, s.served - before, s.clients.size(), s.blocked);
  return s.served > before || completed > 0 ? 1 : 0;
}

}  // namespace verbscope
