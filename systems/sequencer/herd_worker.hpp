// The data path of a worker of `sequencer --design herd` (herd_places.hpp says how the two ends meet).
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "systems/answers/queue.hpp"
#include "systems/sequencer/herd_places.hpp"

namespace verbscope {

// A worker's view of one client.
struct HerdClient {
  std::uint64_t next = 0;   // number of the request that comes next
  std::uint64_t retry = 0;  // what its retry slot held last
  ibv_send_wr to{};         // where its answers go: wr.ud
  std::uint32_t port = 0;
  std::uint32_t node = 0;
};

struct HerdWorker {
  ibv_cq* cq = nullptr;
  std::span<AnswerQueue> queues;
  std::span<AnswerPort> ports;
  std::span<HerdClient> clients;
  std::span<ibv_send_wr*> collected;  // room for an answer to each client
  std::span<std::uint64_t> answered;  // answers to each client machine
  std::uint64_t* counter = nullptr;
  std::byte* region = nullptr;
  HerdPlaces places;
  std::uint32_t worker = 0;
  bool batching = true;
  std::uint32_t max_batch = 16;  // answers behind one doorbell
  std::size_t count = 0;         // requests collected in this pass
  std::uint64_t blocked = 0;     // requests left in this pass because a send queue was full
  std::uint32_t first = 0;       // client at which a pass begins: the first that was left so
  std::uint64_t bell = 0;        // what the bell word held last
  std::uint64_t served = 0;
  WorkerCounts counts;
};

// Takes request `number` of client `c` as one of this pass. False: its port's queue is full.
inline bool collect(HerdWorker& s, std::uint32_t c, std::uint64_t number) {
  HerdClient& client = s.clients[c];
  AnswerQueue& queue = s.ports[client.port].current();
  if (queue.lane.room == 0) {
    if (s.blocked++ == 0) s.first = c;
    return false;
  }
  ibv_send_wr& answer = append(queue);
  answer.wr.ud = client.to.wr.ud;
  answer.imm_data = htobe32(tag_of(s.worker, number));
  s.collected[s.count++] = &answer;
  client.next = std::max(client.next, number + 1);
  ++s.answered[client.node];
  return true;
}

// Gives what was collected its values, by one atomic add for all, and posts it.
template <Node N>
inline bool answer(N& node, HerdWorker& s, bool measured, RunEnd& end) {
  std::uint64_t value = node.fetch_add(*s.counter, s.count);
  for (ibv_send_wr* wr : s.collected.first(s.count)) {
    std::memcpy(reinterpret_cast<void*>(wr->sg_list->addr), &value, sizeof value);
    ++value;
  }
  s.served += s.count;
  s.count = 0;
  return post_all(s.ports, s.max_batch, measured ? &s.counts.batches : nullptr, end);
}

// One pass over the clients: at most one request of each, which `serve(c)` collects. Who was left when the room ended
// comes first in the next, so that nobody waits for ever. False: a post failed.
template <Node N, class Serve>
inline bool serve_clients(N& node, HerdWorker& s, bool measured, RunEnd& end, Serve&& serve) {
  node.look(s.clients.size());
  const auto count = static_cast<std::uint32_t>(s.clients.size());
  const std::uint32_t first = s.first;
  for (std::uint32_t i = 0; i < count; ++i) {
    serve(first + i < count ? first + i : first + i - count);
    if (!s.batching && s.count > 0 && !answer(node, s, measured, end)) return false;
  }
  return s.count == 0 || answer(node, s, measured, end);
}

// Serves the requests that clients wrote into their slots.
template <Node N>
inline bool serve_slots(N& node, HerdWorker& s, bool measured, RunEnd& end) {
  return serve_clients(node, s, measured, end, [&s](std::uint32_t c) {
    const std::uint64_t next = s.clients[c].next;
    std::byte* const slot = s.region + s.places.slot(s.worker, c, next);
    if (load_word<std::uint64_t>(slot) == request_word(next)) collect(s, c, next);
  });
}

// Serves the requests that clients wrote into their retry slots, when somebody has rung.
template <Node N>
inline bool serve_retries(N& node, HerdWorker& s, bool measured, RunEnd& end) {
  const auto bell = load_word<std::uint64_t>(s.region + s.places.bell(s.worker));
  if (bell == s.bell) [[likely]]
    return true;
  bool all = true;
  const bool posted = serve_clients(node, s, measured, end, [&s, &all](std::uint32_t c) {
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

// One pass over retries and slots: retries first, for who asks again has waited longest. False: a post failed.
template <Node N>
inline bool serve(N& node, HerdWorker& s, bool measured, RunEnd& end) {
  s.blocked = 0;
  return serve_retries(node, s, measured, end) && serve_slots(node, s, measured, end);
}

// Answers until told to quit; never waits for more requests than there are.
template <Node N>
void worker_loop(N& node, HerdWorker& s, const RunControl& control, ThreadTally& tally) {
  node.watch(s.region + s.places.bell(s.worker), s.places.block_bytes());
  for (;;) {
    const bool measured = in_window(control.phase.load(std::memory_order_relaxed));
    const std::uint64_t before = s.served;
    if (!serve(node, s, measured, tally.end)) return;
    const int completed = reap_answers(s.cq, s.queues, tally.end);
    if (completed < 0) return;
    const bool empty = s.served == before;
    if (measured) count_pass(s.counts, s.served - before, s.clients.size(), s.blocked);
    if (!empty) {
      tally.done_ops.store(s.served, std::memory_order_relaxed);
    } else if (completed == 0) {
      if (must_give_up(control, tally.end)) return;
      node.relax();
    }
  }
}

}  // namespace verbscope
