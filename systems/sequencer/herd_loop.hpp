// The data paths of `sequencer --design herd` (Kalia et al., ATC 2016, section 4.1): a client writes its requests into
// slots of the server's memory over UC (systems/requests/request_slots.hpp) and gets the value by UD SEND. It chooses
// the worker of each request at random.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "microbench/loop/choice.hpp"
#include "systems/requests/request_slots.hpp"
#include "systems/sequencer/receipts.hpp"

namespace verbscope {

// A request carries no data: it is a word whose last byte is not 0.
inline constexpr std::uint64_t kHerdRequest = ~std::uint64_t{0};
inline constexpr std::size_t kHerdRequestBytes = sizeof kHerdRequest;

// A request that waits for its response.
struct HerdAsked : Asked {
  std::byte* end = nullptr;  // of its bytes
};

class HerdAsker : public RequestAsker {
 public:
  ClientState* state = nullptr;
  std::span<SlotLane<HerdAsked>> lanes;  // one per worker
  SlotWriter* writer = nullptr;
  Choice choice{1, true, 0, 0};  // the worker of the next request

  bool ask(Picos now, RunEnd& end) {
    SendQueue& queue = state->queues[0];
    std::uint32_t full = 0;  // lanes in a row without a free slot
    while (may_ask(queue) && full < lanes.size()) {
      if (full == 0) turn_ = choice.next();
      SlotLane<HerdAsked>& lane = lanes[(turn_ + full) % lanes.size()];
      if (lane.next().open) {
        ++full;
        continue;
      }
      full = 0;
      if (!open_one(end)) return false;
      HerdAsked& asked = lane.begin(now);
      state->receipts.ask(asked, now);
      std::memcpy(asked.end - kHerdRequestBytes, &kHerdRequest, kHerdRequestBytes);
      if (!writer->write(queue, lane, asked, asked.end - kHerdRequestBytes, end)) return false;
    }
    return true;
  }

  bool take(const ibv_wc& wc, Picos now, bool measured, RunEnd& end) {
    if (is_send_id(wc.wr_id)) return true;
    const std::uint64_t value = recvs.take(wc);
    const std::uint32_t tag = be32toh(wc.imm_data);
    const std::uint32_t worker = tagged(tag);
    if (worker >= lanes.size() || (wc.wc_flags & IBV_WC_WITH_IMM) == 0) [[unlikely]] {
      ++state->receipts.repeated;  // not a response
      return true;
    }
    if (Asked* const asked = lanes[worker].tagged_with(tag); asked != nullptr) {
      asked->open = false;
      close_one();
      state->receipts.take(value, *asked, now, measured);
    } else {
      state->receipts.take_surplus(value);
    }
    return cover(end);
  }

  // Asks again for the oldest request of each lane if it has waited for too long.
  bool ask_again(Picos now, RunEnd& end) {
    SendQueue& queue = state->queues[0];
    return retry_oldest(
        lanes, *writer, queue, now, state->retry_after, end, [&](SlotLane<HerdAsked>& lane, const HerdAsked& oldest) {
          ++state->receipts.retries;
          return cover(end, 1) && writer->write_retry(queue, lane, oldest, oldest.end - kHerdRequestBytes, end);
        });
  }

 private:
  std::uint64_t turn_ = 0;
};

struct HerdWorker : SlotServer {
  static constexpr std::size_t kCleared = kHerdRequestBytes;

  std::span<ibv_send_wr*> collected;  // room for a response to each client, and to each of its retries
  std::uint64_t* counter = nullptr;
  std::size_t count = 0;  // requests collected in this pass
  PassCounts counts;

  void begin_interval() { counts = {}; }
};

// Whether a response to the client can be posted. If not, its request stays for the next pass, which begins with the
// first client without room, so that no client starves.
inline bool has_room(HerdWorker& s, SlotClient& client) {
  if (client.port->current().room > 0) return true;
  if (s.blocked++ == 0) s.first = &client;
  return false;
}

// Gives the collected requests their values, by one atomic add for all, and posts the responses.
template <Node N>
inline bool answer(N& node, HerdWorker& s, RunEnd& end) {
  if (s.count == 0) return true;
  std::uint64_t value = node.fetch_add(*s.counter, s.count);
  for (ibv_send_wr* wr : s.collected.first(s.count)) {
    std::memcpy(reinterpret_cast<void*>(wr->sg_list->addr), &value, sizeof value);
    ++value;
  }
  s.served += s.count;
  s.count = 0;
  return post_all(s.ports, s.max_batch, s.measured ? &s.counts.batches : nullptr, end);
}

// Collects request `number` of the client, and answers it unless responses go out in batches.
template <Node N>
inline bool collect(N& node, HerdWorker& s, SlotClient& client, std::uint64_t number, RunEnd& end) {
  ibv_send_wr& response = append_next(client.port->current());
  response.wr.ud = client.to;
  response.imm_data = htobe32(tag_of(s.thread, number));
  s.collected[s.count++] = &response;
  ++client.answered;
  return s.batching || answer(node, s, end);
}

// One pass of server_loop(), over retries and slots: retries first, because they have waited longest.
template <Node N>
inline int serve(N& node, HerdWorker& s, RunEnd& end) {
  s.blocked = 0;
  const std::uint64_t before = s.served;
  node.poll_memory(s.clients.size());
  bool posted = poll_retries(
      s, [&](SlotClient& client) { return has_room(s, client); },
      [&](SlotClient& client, std::uint64_t number, const std::byte*, bool) {
        return collect(node, s, client, number, end);
      });
  if (!posted || !answer(node, s, end)) return -1;
  poll_slots(
      s,
      [&](SlotClient& client, std::byte* slot) {
        if (!has_room(s, client)) return true;
        const std::uint64_t number = client.next;
        leave_slot(s, client, slot);
        return posted = collect(node, s, client, number, end);
      },
      [] { return true; });
  if (!posted || !answer(node, s, end)) return -1;
  const int completed = reap_responses(s.cq, s.queues, end);
  if (completed < 0) return -1;
  if (s.measured) count_pass(s.counts, s.served - before, s.clients.size(), s.blocked);
  return s.served > before || completed > 0 ? 1 : 0;
}

}  // namespace verbscope
