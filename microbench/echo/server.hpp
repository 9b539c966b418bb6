// The data path of the server of echo_rate, which answers each request with the bytes that it got. A pass over what has
// come makes the answers, at most post_list of them behind one doorbell, and never waits for more. Those to the
// requests of one lane go out on one queue, in order: its own, or for datagrams one that several lanes of its port
// share.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "common/ring.hpp"
#include "microbench/echo/messages.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

struct EchoServerLane {
  std::span<ibv_send_wr> responses;        // response j sends back what lies in place j
  EchoSlots in;                            // requests
  RecvLane recvs;                          // requests by SEND
  std::uint32_t queue = 0;                 // the answers go out on it
  std::span<const ibv_send_wr> addresses;  // UD: where the response to client i goes
  std::span<std::uint64_t> answered;       // UD: responses to client i
  std::uint64_t served = 0;                // requests taken
  std::uint64_t last = 0;                  // requests by WRITE: the number of the last
};

struct EchoServerState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<SendQueue> queues;  // one a lane
  std::span<EchoServerLane> lanes;
  std::uint32_t post_list = 1;  // answers behind one doorbell at most
  Nanos work{0};                // what the server computes for each request
  bool measured = false;        // in this pass
  BatchCounts batches;          // of the measured window
  bool by_memory = true;        // requests by WRITE
  bool lossy = false;           // messages can be lost
  std::uint32_t first = 0;      // lane at which a pass over written requests begins
  Ring<std::uint64_t> waiting;  // RECVs (wr_id) that have a request to answer
  std::uint64_t waiting_head = 0, waiting_tail = 0;
  std::uint64_t wrong = 0;  // requests that name no client
};

// Computes for `time`, as long as a request takes.
template <Node N>
inline void compute(N& node, Nanos time) {
  const Picos until = node.now() + time;
  node.compute(time);
  while (node.now() < until) {  // a host does nothing for compute()
  }
}

// Posts the list of the queue, if there is one.
inline bool post_answers(EchoServerState& s, SendQueue& queue, RunEnd& end) {
  return post_appended(queue, s.post_list, s.measured ? &s.batches : nullptr, end);
}

// Makes `response` to a request of `lane` the last of the list of its queue, which must have room; a list that is full
// is posted.
template <Node N>
inline bool answer(N& node, EchoServerState& s, const EchoServerLane& lane, ibv_send_wr& response, RunEnd& end) {
  if (s.work > Nanos(0)) compute(node, s.work);
  SendQueue& queue = s.queues[lane.queue];
  response.wr_id = send_id(lane.queue);
  append(queue, response);
  if (queue.list.count < s.post_list) return true;
  return post_answers(s, queue, end);
}

// Posts what a pass has made and not posted.
inline bool end_pass(EchoServerState& s, RunEnd& end) {
  if (s.post_list == 1) return true;
  for (SendQueue& queue : s.queues) {
    if (!post_answers(s, queue, end)) return false;
  }
  return true;
}

// Answers the requests that have been written by now, of each lane at most as many as can be outstanding; `over_gaps`:
// also those behind some that are not there. Who gets no answer because a queue is full comes first in the next pass.
// So nobody waits for ever. False: a post failed.
template <Node N>
inline bool serve_written(N& node, EchoServerState& s, bool over_gaps, bool& moved, RunEnd& end) {
  const auto count = static_cast<std::uint32_t>(s.lanes.size());
  const std::uint32_t first = s.first;
  bool left = false;
  for (std::uint32_t k = 0; k < count; ++k) {
    const std::uint32_t i = first + k < count ? first + k : first + k - count;
    EchoServerLane& lane = s.lanes[i];
    const std::uint64_t served = lane.served, outstanding = lane.responses.size();
    while (lane.served - served < outstanding) {
      const std::uint64_t number = next_written(lane.in, outstanding, lane.last, over_gaps ? outstanding : 1);
      if (number == 0) break;
      if (s.queues[lane.queue].room == 0) {
        if (!left && lane.served == served) {
          s.first = i;
          left = true;
        }
        break;
      }
      lane.last = number;
      ++lane.served;
      if (!answer(node, s, lane, lane.responses[(number - 1) % outstanding], end)) return false;
      moved = true;
    }
  }
  return end_pass(s, end);
}

// Answers the requests that wait in RECVs while there is room. The RECV is posted again first: its place is filled only
// when as many more requests have come as there are RECVs, and a client sends those after it has got this response.
template <Node N>
inline bool serve_received(N& node, EchoServerState& s, RunEnd& end) {
  while (s.waiting_head != s.waiting_tail) {
    const std::uint64_t wr_id = s.waiting[s.waiting_head];
    const std::uint32_t index = recv_queue(wr_id);
    EchoServerLane& lane = s.lanes[index];
    if (s.queues[lane.queue].room == 0) break;
    ++s.waiting_head;
    ++lane.served;
    ibv_send_wr& response = lane.responses[recv_place(wr_id)];
    if (!post_recv(lane.recvs, index, end)) return false;
    if (!lane.addresses.empty()) {
      std::uint64_t tag;
      std::memcpy(&tag, lane.in.end_of(recv_place(wr_id)) - kTagBytes, kTagBytes);
      if (client_of(tag) >= lane.addresses.size()) {
        ++s.wrong;
        continue;
      }
      response.wr.ud = lane.addresses[client_of(tag)].wr.ud;
      ++lane.answered[client_of(tag)];
    }
    if (!answer(node, s, lane, response, end)) return false;
  }
  return end_pass(s, end);
}

// Takes what has completed: requests by SEND as many as make a list, where there are so many. Returns how much, or -1
// with `end` set.
inline int take_completed(EchoServerState& s, RunEnd& end) {
  int all = 0;
  for (;;) {
    const int count = reap(s.cq, s.queues, end, [&s](const ibv_wc& wc) {
      s.waiting[s.waiting_tail++] = wc.wr_id;
      return true;
    });
    if (count < 0) return -1;
    all += count;
    if (count < kCompletionBatch || s.waiting_tail - s.waiting_head >= s.post_list) return all;
  }
}

// Answers until told to quit.
template <Node N>
void echo_server_loop(N& node, EchoServerState& s, const RunControl& control, ThreadTally& tally) {
  IdleWait wait(s.cq, s.channel, tally);
  for (const EchoServerLane& lane : s.lanes) {
    if (s.by_memory) node.watch(lane.in.begin, lane.in.stride * lane.responses.size());
  }
  std::uint64_t served = 0;
  for (;;) {
    bool moved = false, due = !s.by_memory;
    s.measured = in_interval(control.phase.load(std::memory_order_relaxed));
    if (s.by_memory) {
      node.poll_memory(s.lanes.size());
      if (!serve_written(node, s, false, moved, tally.end)) return;
      if (s.lossy && !moved && !serve_written(node, s, true, moved, tally.end)) return;
    }
    for (const SendQueue& queue : s.queues) due = due || queue.due > 0;
    if (due) {
      const int count = take_completed(s, tally.end);
      if (count < 0 || !serve_received(node, s, tally.end)) return;
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
