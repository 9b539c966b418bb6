// The data path of the server of echo_rate, which answers each request with the bytes that it got.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "common/ring.hpp"
#include "microbench/echo/messages.hpp"

namespace verbscope {

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
  bool by_memory = true;        // requests by WRITE
  bool lossy = false;           // messages can be lost
  Ring<std::uint64_t> waiting;  // RECVs (wr_id) that have a request to answer
  std::uint64_t waiting_head = 0, waiting_tail = 0;
  std::uint64_t wrong = 0;  // requests that name no client
};

// Answers the requests that have been written by now; `over_gaps`: also those behind some that are not there. False: a
// post failed.
inline bool serve_written(EchoServerState& s, bool over_gaps, bool& moved, RunEnd& end) {
  for (std::uint32_t i = 0; i < s.lanes.size(); ++i) {
    EchoServerLane& lane = s.lanes[i];
    while (s.queues[i].room > 0) {
      const std::uint64_t outstanding = lane.responses.size();
      const std::uint64_t number = next_written(lane.in, outstanding, lane.last, over_gaps ? outstanding : 1);
      if (number == 0) break;
      if (!post_one(s.queues[i], lane.responses[(number - 1) % outstanding], i, end)) return false;
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
    const std::uint64_t wr_id = s.waiting[s.waiting_head];
    const std::uint32_t index = recv_queue(wr_id);
    EchoServerLane& lane = s.lanes[index];
    if (s.queues[index].room == 0) return true;
    ++s.waiting_head;
    ibv_send_wr& response = lane.responses[recv_place(wr_id)];
    ++lane.served;
    if (!post_recv(lane.recvs, wr_id, end)) return false;
    if (!lane.addresses.empty()) {
      std::uint64_t tag;
      std::memcpy(&tag, lane.recvs.slots.end_of(recv_place(wr_id)) - kTagBytes, kTagBytes);
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
  IdleWait wait(s.cq, s.channel, tally);
  const auto on_recv = [&s](const ibv_wc& wc) {
    s.waiting[s.waiting_tail++] = wc.wr_id;
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
      if (!serve_written(s, false, moved, tally.end)) return;
      if (s.lossy && !moved && !serve_written(s, true, moved, tally.end)) return;
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
    if (!wait.idle_unless_quit(node, control)) return;
  }
}

}  // namespace verbscope
