// The data paths of `sequencer --design herd` (Kalia et al., ATC 2016, section 4.1): a client writes its request into a
// slot of the server's memory over UC and gets the answer, a value of 8 bytes, by UD SEND. The answer's immediate says
// which request it belongs to.
//
// A client chooses the worker of each request at random and numbers its requests for each worker from 0 on. Number n
// goes into slot n % slots as the word n + 1, so that a slot never holds the same word twice and nobody clears it. A
// worker knows which number of a client comes next and looks at that slot alone. A request that was lost, or whose
// answer was, is written again into the client's retry slot, which the worker looks at when its bell word has changed:
// a number that it has served already is served again.
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

#include "microbench/exchanges/atomic_loop.hpp"
#include "microbench/systems/answer_inbox.hpp"
#include "microbench/systems/answer_queue.hpp"
#include "microbench/systems/sequence_receipts.hpp"

namespace verbscope {

// Where things lie in the server's region: the counter on the first line, then a block for each worker, which begins
// with its bell and has for each client `slots` slots and the retry slot, a line each.
struct HerdPlaces {
  static constexpr std::uint64_t kLine = 64;  // bytes: two peers never write to one line

  std::uint32_t workers = 1;
  std::uint32_t clients = 1;  // threads of all machines
  std::uint32_t slots = 1;    // of a client at each worker

  std::uint64_t client_bytes() const { return (slots + std::uint64_t{1}) * kLine; }
  std::uint64_t block_bytes() const { return kLine + clients * client_bytes(); }
  std::uint64_t bytes() const { return kLine + workers * block_bytes(); }
  std::uint64_t bell(std::uint32_t worker) const { return kLine + worker * block_bytes(); }
  std::uint64_t slot(std::uint32_t worker, std::uint32_t client, std::uint64_t number) const {
    return bell(worker) + kLine + client * client_bytes() + number % slots * kLine;
  }
  std::uint64_t retry(std::uint32_t worker, std::uint32_t client) const {
    return bell(worker) + kLine + client * client_bytes() + slots * kLine;
  }
};

// A word in a slot: a request's number and, in a retry slot, which try it is.
inline constexpr std::uint64_t kRetryNumbers = std::uint64_t{1} << 48;
constexpr std::uint64_t request_word(std::uint64_t number, std::uint64_t attempt = 0) {
  return attempt * kRetryNumbers + (number + 1) % kRetryNumbers;
}

// The immediate of an answer: the worker, and the low bits of the request's number.
inline constexpr std::uint32_t kTagNumbers = 1u << 20;
constexpr std::uint32_t answer_tag(std::uint32_t worker, std::uint64_t number) {
  return worker * kTagNumbers + static_cast<std::uint32_t>(number % kTagNumbers);
}

// A client's requests to one worker.
struct HerdLane {
  std::span<Asked> asked;        // number n in place n % size
  std::uint64_t first_slot = 0;  // addresses in the server's memory
  std::uint64_t retry_slot = 0;
  std::uint64_t bell = 0;
  std::uint64_t sent = 0;
  std::uint64_t attempts = 0;
  std::uint64_t ring = 0;  // to be written to the bell, for a retry that is in its slot; 0: nothing
};

// Requests prebuilt: one WRITE, and the two of a retry; the words that they send, inline.
struct HerdWrites {
  ibv_send_wr ask{};
  ibv_send_wr retry{};
  ibv_send_wr ring{};
  std::uint64_t word = 0;
  std::uint64_t retry_word = 0;
  std::uint64_t bell_word = 0;
};

class HerdAsker {
 public:
  ClientState* state = nullptr;
  std::span<HerdLane> lanes;  // by worker
  HerdWrites* writes = nullptr;
  AnswerInbox inbox;
  std::uint32_t client = 0;             // thread of all
  std::uint32_t outstanding = 1;        // at most
  CounterChoice choice{1, true, 0, 0};  // of the worker to ask next

  std::uint32_t open() const { return open_; }

  bool ask(Picos now, RunEnd& end) {
    LaneQueue& queue = state->queues[0];
    std::uint32_t full = 0;  // lanes in a row without a free slot
    while (open_ < outstanding && queue.room > 0 && full < lanes.size()) {
      if (full == 0) turn_ = choice.next();
      HerdLane& lane = lanes[(turn_ + full) % lanes.size()];
      Asked& asked = lane.asked[lane.sent % lane.asked.size()];
      if (asked.open) {
        ++full;
        continue;
      }
      full = 0;
      if (!inbox.cover(++open_, end)) return false;
      asked = {now, now, state->receipts.next, lane.sent, true};
      writes->word = request_word(lane.sent);
      writes->ask.wr.rdma.remote_addr = lane.first_slot + lane.sent % lane.asked.size() * HerdPlaces::kLine;
      ++lane.sent;
      ++state->receipts.asked;
      if (!post_one(queue, writes->ask, 0, end)) return false;
    }
    return true;
  }

  bool take(const ibv_wc& wc, Picos now, bool measured, RunEnd& end) {
    if ((wc.wr_id & kSendId) != 0) return true;
    const std::uint64_t value = inbox.take(wc);
    const std::uint32_t tag = be32toh(wc.imm_data);
    const std::uint32_t worker = tag / kTagNumbers;
    if (worker >= lanes.size() || (wc.wc_flags & IBV_WC_WITH_IMM) == 0) [[unlikely]] {
      ++state->receipts.repeated;  // no answer at all
      return true;
    }
    HerdLane& lane = lanes[worker];
    const std::uint64_t behind = (lane.sent - tag) % kTagNumbers;  // requests from that one on
    Asked& asked = lane.asked[(lane.sent - behind) % lane.asked.size()];
    if (behind > lane.asked.size() || !asked.open || asked.number != lane.sent - behind) {
      state->receipts.take_surplus(value);
    } else {
      asked.open = false;
      --open_;
      state->receipts.take(value, asked, now, measured);
    }
    return inbox.cover(open_, end);
  }

  // The oldest request of each lane that waits for too long. A send queue with room for its retry alone rings later.
  bool ask_again(Picos now, RunEnd& end) {
    for (HerdLane& lane : lanes) {
      if (lane.ring == 0 && !write_again(lane, now, end)) return false;
      if (lane.ring != 0 && !ring(lane, end)) return false;
    }
    return true;
  }

 private:
  bool write_again(HerdLane& lane, Picos now, RunEnd& end) {
    Asked* oldest = nullptr;
    for (Asked& asked : lane.asked) {
      if (asked.open && (oldest == nullptr || asked.number < oldest->number)) oldest = &asked;
    }
    LaneQueue& queue = state->queues[0];
    if (oldest == nullptr || now - oldest->last < state->retry_after || queue.room == 0) return true;
    oldest->last = now;
    if (!inbox.cover(open_ + 1, end)) return false;
    writes->retry_word = request_word(oldest->number, ++lane.attempts);
    writes->retry.wr.rdma.remote_addr = lane.retry_slot;
    lane.ring = writes->retry_word * 0x9e3779b97f4a7c15u + client;  // other than that of any other retry
    ++state->receipts.retries;
    return post_one(queue, writes->retry, 0, end);
  }

  bool ring(HerdLane& lane, RunEnd& end) {
    if (state->queues[0].room == 0) return true;
    writes->bell_word = std::exchange(lane.ring, 0);
    writes->ring.wr.rdma.remote_addr = lane.bell;
    return post_one(state->queues[0], writes->ring, 0, end);
  }

  std::uint32_t open_ = 0;
  std::uint64_t turn_ = 0;
};

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
  std::span<std::uint64_t> answered;  // by client machine
  std::uint64_t* counter = nullptr;
  std::byte* region = nullptr;
  HerdPlaces places;
  std::uint32_t worker = 0;
  bool batching = true;
  std::uint32_t max_batch = 16;  // answers behind one doorbell
  std::size_t count = 0;         // collected in this pass
  std::uint64_t blocked = 0;     // left in this pass because a send queue was full
  std::uint32_t first = 0;       // client at which a pass begins: the first that was left so
  std::uint64_t bell = 0;        // what it held last
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
  answer.imm_data = htobe32(answer_tag(s.worker, number));
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

// What clients wrote into their slots.
template <Node N>
inline bool serve_slots(N& node, HerdWorker& s, bool measured, RunEnd& end) {
  return serve_clients(node, s, measured, end, [&s](std::uint32_t c) {
    const std::uint64_t next = s.clients[c].next;
    std::byte* const slot = s.region + s.places.slot(s.worker, c, next);
    if (load_word<std::uint64_t>(slot) == request_word(next)) collect(s, c, next);
  });
}

// And into their retry slots, when somebody has rung.
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
    // Of a later request this tells nothing: the one before it will be asked for again first.
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
    const bool measured = control.phase.load(std::memory_order_relaxed) == Phase::measure;
    const std::uint64_t before = s.served;
    if (!serve(node, s, measured, tally.end)) return;
    const int completed = reap_answers(s.cq, s.queues, tally.end);
    if (completed < 0) return;
    const bool empty = s.served == before;
    if (measured) count_pass(s.counts, s.served - before, s.clients.size(), s.blocked);
    if (!empty) {
      tally.done_ops.store(s.served, std::memory_order_relaxed);
    } else if (completed == 0) {
      if (control.quit.load(std::memory_order_relaxed)) {
        tally.end = {.kind = EndKind::gave_up};
        return;
      }
      node.relax();
    }
  }
}

}  // namespace verbscope
