// The data paths of echo_rate: a client keeps a window of requests on each QP, the server answers each with the bytes
// that it got. A request or a response is written into the peer's memory (WRITE) or arrives in a RECV (SEND).
//
// The last eight bytes of a message are its tag: who asked, and the number of the request on its QP, which counts from
// 1. A message that is written ends where its slot ends, so that the tag is one aligned word; slot (number - 1) %
// window held a lower number before, so no stale tag is taken for a new one.
//
// Where messages can be lost, those of one QP come in order all the same: a request is lost when a later one has come,
// or been answered, or when nothing has come for a while. It then gives its place in the window back.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "microbench/paths/lane_queue.hpp"
#include "microbench/paths/recv_loop.hpp"

namespace verbscope {

inline constexpr std::uint32_t kTagBytes = 8;
inline constexpr std::uint64_t kTagNumbers = std::uint64_t{1} << 40;
constexpr std::uint64_t echo_tag(std::uint32_t client, std::uint64_t number) {
  return client * kTagNumbers + number % kTagNumbers;
}
constexpr std::uint64_t number_of(std::uint64_t tag) {
  return tag % kTagNumbers;
}
constexpr std::uint64_t client_of(std::uint64_t tag) {
  return tag / kTagNumbers;
}

// Equal places in memory for messages of one QP.
struct EchoSlots {
  std::byte* begin = nullptr;
  std::uint64_t stride = 0;
  std::byte* end_of(std::uint64_t index) const { return begin + (index + 1) * stride; }
};

// The number of the next message that has been written into `slots`, one for each of `window`, behind number `last`; 0:
// none. It looks `ahead` slots: over one where those before it may be lost.
inline std::uint64_t next_written(const EchoSlots& slots, std::uint64_t window, std::uint64_t last,
                                  std::uint64_t ahead) {
  for (std::uint64_t i = 0; i < ahead; ++i) {
    const auto number = number_of(load_word<std::uint64_t>(slots.end_of((last + i) % window) - kTagBytes));
    if (number <= last) continue;
    // Those before it may have come since they were looked at.
    const std::uint64_t earlier = next_written(slots, window, last, i);
    return earlier != 0 ? earlier : number;
  }
  return 0;
}

// RECVs of one QP, posted one by one; RECV j fills place j, whose message ends at slots.end_of(j).
struct EchoRecvs {
  ibv_qp* qp = nullptr;  // null: nothing is received
  std::span<ibv_recv_wr> requests;
  EchoSlots slots;
};

inline bool post_recv(const EchoRecvs& recvs, std::uint64_t wr_id, RunEnd& end) {
  ibv_recv_wr* bad;
  const int error = ibv_post_recv(recvs.qp, &recvs.requests[wr_id & 0xffffffff], &bad);
  if (error != 0) [[unlikely]]
    end = {.kind = EndKind::post_failed, .code = error, .queue = static_cast<std::uint32_t>(wr_id >> 32)};
  return error == 0;
}

struct EchoClientLane {
  std::span<ibv_send_wr> requests;  // one a slot of the window
  EchoSlots out;                    // what they send
  EchoSlots in;                     // responses by WRITE
  EchoRecvs recvs;                  // responses by SEND
  std::uint64_t sent = 0, answered = 0;
  std::uint64_t settled = 0;  // the requests up to this number are answered or given up
  std::uint64_t seen = 0;     // `settled` when it was looked at last, and the time since when it has been that
  Picos since{0};
};

struct EchoClientState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<LaneQueue> queues;
  std::span<EchoClientLane> lanes;
  std::uint32_t client = 0;
  std::uint32_t size = 0;
  bool by_memory = true;  // responses by WRITE
  bool validate = false;  // every byte, not the tag alone
  Picos give_up{0};       // after so long without a response; 0: nothing can be lost
  std::uint64_t wrong = 0;
  std::uint64_t goal = Window::kNoGoal;
};

// Fills the windows. False: a post failed.
inline bool ask(EchoClientState& s, RunEnd& end) {
  for (std::uint32_t i = 0; i < s.lanes.size(); ++i) {
    EchoClientLane& lane = s.lanes[i];
    LaneQueue& queue = s.queues[i];
    while (lane.sent - lane.settled < lane.requests.size() && queue.room > 0) {
      const std::uint64_t slot = lane.sent % lane.requests.size();
      store_word(lane.out.end_of(slot) - kTagBytes, echo_tag(s.client, ++lane.sent));
      if (!post_one(queue, lane.requests[slot], i, end)) return false;
    }
  }
  return true;
}

// Counts a response, which ends at `response_end`: it must be what its request said. Where requests are given up, one
// may come too late: another request has its place.
inline void take_response(EchoClientState& s, EchoClientLane& lane, const std::byte* response_end) {
  std::uint64_t tag;
  std::memcpy(&tag, response_end - kTagBytes, kTagBytes);
  ++lane.answered;
  if (s.give_up > Picos(0) && number_of(tag) <= lane.settled) return;
  const std::byte* const asked = lane.out.end_of((number_of(tag) - 1) % lane.requests.size());
  const std::uint32_t compared = s.validate ? s.size : kTagBytes;
  if (std::memcmp(response_end - compared, asked - compared, compared) != 0) ++s.wrong;
  lane.settled = s.give_up > Picos(0) && number_of(tag) <= lane.sent ? number_of(tag) : lane.settled + 1;
}

// Responses that have been written by now, `count_one` after each.
template <class Count>
inline bool collect_written(EchoClientState& s, Count&& count_one) {
  bool moved = false;
  for (EchoClientLane& lane : s.lanes) {
    while (lane.settled < lane.sent) {
      const std::uint64_t window = lane.requests.size();
      const std::uint64_t ahead = s.give_up > Picos(0) ? window : 1;
      const std::uint64_t number = next_written(lane.in, window, lane.settled, ahead);
      if (number == 0) break;
      take_response(s, lane, lane.in.end_of((number - 1) % window));
      count_one();
      moved = true;
    }
  }
  return moved;
}

// Gives up the requests of lanes on which no response has come for long enough.
inline void give_up_lost(EchoClientState& s, Picos now) {
  for (EchoClientLane& lane : s.lanes) {
    if (lane.settled == lane.sent || lane.settled != lane.seen) {
      lane.seen = lane.settled;
      lane.since = now;
    } else if (now - lane.since >= s.give_up) {
      lane.settled = lane.sent;
    }
  }
}

// Asks until the stop or the goal, then waits for the responses to come.
template <Node N>
void echo_client_loop(N& node, EchoClientState& s, const RunControl& control, ThreadTally& tally) {
  Window window(tally, s.goal);
  IdleWait wait(s.cq, s.channel);
  std::uint64_t ops = 0;
  bool running = true;
  const bool lossy = s.give_up > Picos(0);
  const auto count_one = [&] {
    tally.done_ops.store(++ops, std::memory_order_relaxed);
    if (window.see(node, control.phase.load(std::memory_order_relaxed), ops)) running = false;
  };
  const auto on_recv = [&](const ibv_wc& wc) {
    EchoClientLane& lane = s.lanes[wc.wr_id >> 32];
    take_response(s, lane, lane.recvs.slots.end_of(wc.wr_id & 0xffffffff));
    count_one();
    return post_recv(lane.recvs, wc.wr_id, tally.end);
  };
  for (const EchoClientLane& lane : s.lanes) {
    if (s.by_memory) node.watch(lane.in.begin, lane.in.stride * lane.requests.size());
  }
  for (;;) {
    if (lossy) give_up_lost(s, node.now());
    if (running && !ask(s, tally.end)) return;
    bool moved = false, open = false, due = !s.by_memory;
    if (s.by_memory) {
      node.look();
      moved = collect_written(s, count_one);
    }
    for (std::size_t i = 0; i < s.lanes.size(); ++i) {
      due = due || s.queues[i].due > 0;
      open = open || s.lanes[i].settled < s.lanes[i].sent || s.queues[i].due > 0;
    }
    if (!running && !open) return;
    if (due) {
      const int count = reap(s.cq, s.queues, tally.end, on_recv);
      if (count < 0) return;
      moved = moved || count > 0;
    }
    if (moved) continue;
    if (control.quit.load(std::memory_order_relaxed)) {
      tally.end = {.kind = EndKind::gave_up};
      return;
    }
    if (lossy && s.channel == nullptr) {
      node.relax_until(node.now() + s.give_up);
    } else {
      wait.idle(node);
    }
  }
}

struct EchoServerLane {
  std::span<ibv_send_wr> responses;        // response j sends back what lies in place j
  EchoSlots in;                            // requests by WRITE
  EchoRecvs recvs;                         // requests by SEND
  std::span<const ibv_send_wr> addresses;  // UD: where the response to client i goes
  std::span<std::uint64_t> answered;       // UD: responses to client i
  std::uint64_t served = 0;                // requests taken
  std::uint64_t last = 0;                  // requests by WRITE: the number of the last
};

struct EchoServerState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<LaneQueue> queues;
  std::span<EchoServerLane> lanes;
  bool by_memory = true;             // requests by WRITE
  bool lossy = false;                // which can be lost
  std::span<std::uint64_t> waiting;  // circular, a power of two: RECVs (wr_id) that have a request to answer
  std::uint64_t waiting_head = 0, waiting_tail = 0;
  std::uint64_t wrong = 0;  // requests of nobody
};

// Answers the requests that have been written by now. False: a post failed.
inline bool serve_written(EchoServerState& s, bool& moved, RunEnd& end) {
  for (std::uint32_t i = 0; i < s.lanes.size(); ++i) {
    EchoServerLane& lane = s.lanes[i];
    while (s.queues[i].room > 0) {
      const std::uint64_t window = lane.responses.size();
      const std::uint64_t number = next_written(lane.in, window, lane.last, s.lossy ? window : 1);
      if (number == 0) break;
      if (!post_one(s.queues[i], lane.responses[(number - 1) % window], i, end)) return false;
      lane.last = number;
      ++lane.served;
      moved = true;
    }
  }
  return true;
}

// Answers the requests that wait in RECVs while there is room. The RECV is posted again first: its place is filled only
// when as many more requests have come as there are RECVs, and a client sends those after it has got this response.
inline bool serve_received(EchoServerState& s, RunEnd& end) {
  while (s.waiting_head != s.waiting_tail) {
    const std::uint64_t wr_id = s.waiting[s.waiting_head & (s.waiting.size() - 1)];
    const auto index = static_cast<std::uint32_t>(wr_id >> 32);
    EchoServerLane& lane = s.lanes[index];
    if (s.queues[index].room == 0) return true;
    ++s.waiting_head;
    ibv_send_wr& response = lane.responses[wr_id & 0xffffffff];
    ++lane.served;
    if (!post_recv(lane.recvs, wr_id, end)) return false;
    if (!lane.addresses.empty()) {
      std::uint64_t tag;
      std::memcpy(&tag, lane.recvs.slots.end_of(wr_id & 0xffffffff) - kTagBytes, kTagBytes);
      if (client_of(tag) >= lane.addresses.size()) {
        ++s.wrong;
        continue;
      }
      response.wr.ud = lane.addresses[client_of(tag)].wr.ud;
      ++lane.answered[client_of(tag)];
    }
    if (!post_one(s.queues[index], response, index, end)) return false;
  }
  return true;
}

// Answers until told to quit.
template <Node N>
void echo_server_loop(N& node, EchoServerState& s, const RunControl& control, ThreadTally& tally) {
  IdleWait wait(s.cq, s.channel);
  const auto on_recv = [&s](const ibv_wc& wc) {
    s.waiting[s.waiting_tail++ & (s.waiting.size() - 1)] = wc.wr_id;
    return true;
  };
  for (const EchoServerLane& lane : s.lanes) {
    if (s.by_memory) node.watch(lane.in.begin, lane.in.stride * lane.responses.size());
  }
  std::uint64_t served = 0;
  for (;;) {
    bool moved = false, due = !s.by_memory;
    if (s.by_memory) {
      node.look();
      if (!serve_written(s, moved, tally.end)) return;
    }
    for (const LaneQueue& queue : s.queues) due = due || queue.due > 0;
    if (due) {
      const int count = reap(s.cq, s.queues, tally.end, on_recv);
      if (count < 0 || !serve_received(s, tally.end)) return;
      moved = moved || count > 0;
    }
    if (moved) {
      served = 0;
      for (const EchoServerLane& lane : s.lanes) served += lane.served;
      tally.done_ops.store(served, std::memory_order_relaxed);
      continue;
    }
    if (control.quit.load(std::memory_order_relaxed)) {
      tally.end = {.kind = EndKind::gave_up};
      return;
    }
    wait.idle(node);
  }
}

}  // namespace verbscope
