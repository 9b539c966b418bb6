// How a thread of a server responds by datagrams: the UD QPs of each port take turns. Responses are posted one by one,
// or those of a pass as one list per port, with one doorbell or a few.
#pragma once

#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "machine/memory.hpp"
#include "microbench/bench/benchmark.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

// The queues of one port, which take turns.
class ResponsePort {
 public:
  explicit ResponsePort(std::span<SendQueue> queues) : turn_(queues.data()) {
    for (SendQueue& queue : queues) queue.following = &queue == &queues.back() ? queues.data() : &queue + 1;
  }

  SendQueue& current() { return *turn_; }
  void advance() { turn_ = turn_->following; }
  // Returns the queue whose turn it is, and advances.
  SendQueue& take_turn() {
    SendQueue& queue = *turn_;
    advance();
    return queue;
  }

 private:
  SendQueue* turn_;
};

// Where the responses to a client thread go.
struct ResponseTarget {
  UdAddress to{};
  ResponsePort* port = nullptr;  // the server's port that leads to it
  std::uint64_t answered = 0;    // responses so far
  std::uint32_t node = 0;        // its machine
};

// Makes `response` one of `bytes` bytes to `client`, with this tag. A caller whose responses may be header-only sets
// num_sge.
[[gnu::always_inline]] inline void address_response(ibv_send_wr& response, ResponseTarget& client, std::uint32_t bytes,
                                                    bool inlined, std::uint32_t tag) {
  response.sg_list->length = bytes;
  response.send_flags = inlined ? unsigned{IBV_SEND_INLINE} : 0u;
  response.wr.ud = client.to;
  response.imm_data = htobe32(tag);
  ++client.answered;
}

// Room for responses on any of the queues.
inline std::size_t least_room(std::span<const SendQueue> queues) {
  std::size_t room = queues.front().room;
  for (const SendQueue& queue : queues) room = std::min<std::size_t>(room, queue.room);
  return room;
}

// Takes completions of responses when a queue is half used. Returns how many, or -1 with `end` set.
inline int reap_responses(ibv_cq* cq, std::span<SendQueue> queues, RunEnd& end) {
  const auto half_used = [](const SendQueue& q) { return q.room < (q.depth + 1) / 2; };
  if (std::ranges::none_of(queues, half_used)) return 0;
  return take_completions<kCompletionBatch>(
      cq, kCompletionBatch, end, [queues](const ibv_wc& wc) { retire_signaled(queues[sent_queue(wc.wr_id)]); });
}

// Posts the lists of all ports, with a doorbell per `most` responses.
inline bool post_all(std::span<ResponsePort> ports, std::uint32_t most, BatchCounts* batches, RunEnd& end) {
  for (ResponsePort& port : ports) {
    SendQueue& q = port.current();
    if (q.list.count == 0) continue;
    if (!post_appended(q, most, batches, end)) return false;
    port.advance();
  }
  return true;
}

// The largest response, inlined or read by the adapter.
struct ResponseBodies {
  std::uint32_t bytes = 8;
  bool inlined = true;
};

// The UD QPs of a thread, by port, each with a ring of prebuilt responses. A body belongs to its response until that
// has left.
class ResponseQueues {
 public:
  explicit ResponseQueues(const ThreadSetup& setup, const ResponseBodies& bodies = {});

  std::span<SendQueue> queues() { return queues_; }
  std::span<ResponsePort> ports() { return ports_; }
  // All client threads, each at its number.
  std::vector<ResponseTarget> targets(const ThreadSetup& setup);

 private:
  void add_queue(const ThreadSetup& setup, std::uint32_t lane);

  std::uint32_t depth_;  // requests that a queue holds, a multiple of signal_every
  ResponseBodies shape_;
  std::uint64_t stride_;  // bytes from a body to the next
  Buffer bodies_;
  std::optional<Mr> mr_;
  std::vector<ibv_sge> segments_;
  std::vector<ibv_send_wr> requests_;
  std::vector<SendQueue> queues_;
  std::vector<ResponsePort> ports_;
};

}  // namespace verbscope
