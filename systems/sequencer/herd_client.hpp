// The data path of a client of `sequencer --design herd` (herd_places.hpp says how the two ends meet).
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <span>
#include <utility>

#include "microbench/loop/choice.hpp"
#include "microbench/loop/send_queue.hpp"
#include "systems/rpc/client.hpp"
#include "systems/sequencer/herd_places.hpp"
#include "systems/sequencer/receipts.hpp"

namespace verbscope {

// A client's requests to one worker.
struct HerdLane : RequestLane<Asked> {
  std::uint64_t first_slot = 0;  // addresses in the server's memory
  std::uint64_t retry_slot = 0;
  std::uint64_t bell = 0;
  std::uint64_t attempts = 0;
  std::uint64_t ring = 0;  // word that the bell is due for a retry that is in its slot; 0: none
};

// The prebuilt requests: one WRITE to ask, and the two of a retry; and the words that they send, inline.
struct HerdWrites {
  ibv_send_wr ask{};
  ibv_send_wr retry{};
  ibv_send_wr ring{};
  std::uint64_t word = 0;
  std::uint64_t retry_word = 0;
  std::uint64_t bell_word = 0;
};

class HerdAsker : public RequestAsker {
 public:
  ClientState* state = nullptr;
  std::span<HerdLane> lanes;  // one a worker
  HerdWrites* writes = nullptr;
  std::uint32_t client = 0;      // number of the client thread among all
  Choice choice{1, true, 0, 0};  // the worker to ask next

  bool ask(Picos now, RunEnd& end) {
    SendQueue& queue = state->queues[0];
    std::uint32_t full = 0;  // lanes in a row without a free slot
    while (may_ask(queue) && full < lanes.size()) {
      if (full == 0) turn_ = choice.next();
      HerdLane& lane = lanes[(turn_ + full) % lanes.size()];
      if (lane.next().open) {
        ++full;
        continue;
      }
      full = 0;
      if (!open_one(end)) return false;
      Asked& asked = lane.begin(now);
      state->receipts.ask(asked, now);
      writes->word = request_word(asked.number);
      writes->ask.wr.rdma.remote_addr = lane.first_slot + asked.number % lane.slots.size() * HerdPlaces::kLine;
      if (!post_one(queue, writes->ask, end)) return false;
    }
    return true;
  }

  bool take(const ibv_wc& wc, Picos now, bool measured, RunEnd& end) {
    if (is_send_id(wc.wr_id)) return true;
    const std::uint64_t value = recvs.take(wc);
    const std::uint32_t tag = be32toh(wc.imm_data);
    const std::uint32_t worker = tagged(tag);
    if (worker >= lanes.size() || (wc.wc_flags & IBV_WC_WITH_IMM) == 0) [[unlikely]] {
      ++state->receipts.repeated;  // no answer at all
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

  // Asks again for the oldest request of each lane, when it waits for too long. A send queue with room for its retry
  // alone rings later.
  bool ask_again(Picos now, RunEnd& end) {
    for (HerdLane& lane : lanes) {
      if (lane.ring == 0 && !write_again(lane, now, end)) return false;
      if (lane.ring != 0 && !ring(lane, end)) return false;
    }
    return true;
  }

 private:
  bool write_again(HerdLane& lane, Picos now, RunEnd& end) {
    Asked* const oldest = lane.oldest();
    SendQueue& queue = state->queues[0];
    if (oldest == nullptr || now - oldest->last < state->retry_after || queue.room == 0) return true;
    oldest->last = now;
    if (!cover(end, 1)) return false;
    writes->retry_word = request_word(oldest->number, ++lane.attempts);
    writes->retry.wr.rdma.remote_addr = lane.retry_slot;
    lane.ring = writes->retry_word * 0x9e3779b97f4a7c15u + client;  // other than that of any other retry
    ++state->receipts.retries;
    return post_one(queue, writes->retry, end);
  }

  bool ring(HerdLane& lane, RunEnd& end) {
    if (state->queues[0].room == 0) return true;
    writes->bell_word = std::exchange(lane.ring, 0);
    writes->ring.wr.rdma.remote_addr = lane.bell;
    return post_one(state->queues[0], writes->ring, end);
  }

  std::uint64_t turn_ = 0;
};

}  // namespace verbscope
