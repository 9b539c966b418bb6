// The data path of a client of echo_rate, which keeps requests outstanding on each QP.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "common/histogram.hpp"
#include "microbench/echo/messages.hpp"

namespace verbscope {

struct EchoClientLane {
  std::span<ibv_send_wr> requests;  // as many as may be outstanding, one a slot
  std::span<Picos> asked;           // when the request in each slot was posted
  EchoSlots out;                    // what they send
  EchoSlots in;                     // responses
  RecvLane recvs;                   // responses by SEND
  std::uint64_t sent = 0, answered = 0;
  std::uint64_t settled = 0;  // the requests up to this number are answered or given up
  std::uint64_t seen = 0;     // `settled` when it was looked at last, and the time since when it has been that
  Picos since{0};
};

struct EchoClientState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<SendQueue> queues;
  std::span<EchoClientLane> lanes;
  std::uint32_t client = 0;
  std::uint32_t size = 0;
  bool by_memory = true;  // responses by WRITE
  bool validate = false;  // every byte, not the tag alone
  Picos give_up{0};       // a lane's requests are lost after so long without a response; 0: nothing can be lost
  Histogram latency;      // of the measured window: from before the post to the response seen
  bool measured = false;
  std::uint64_t wrong = 0;
  std::uint64_t goal = MeasuredInterval::kNoGoal;
};

// Asks until as many requests are outstanding as may be. False: a post failed.
template <Node N>
inline bool ask(N& node, EchoClientState& s, RunEnd& end) {
  for (std::uint32_t i = 0; i < s.lanes.size(); ++i) {
    EchoClientLane& lane = s.lanes[i];
    SendQueue& queue = s.queues[i];
    while (lane.sent - lane.settled < lane.requests.size() && queue.room > 0) {
      const std::uint64_t slot = lane.sent % lane.requests.size();
      lane.asked[slot] = node.now();
      store_word(lane.out.end_of(slot) - kTagBytes, echo_tag(s.client, ++lane.sent));
      if (!post_one(queue, lane.requests[slot], end)) return false;
    }
  }
  return true;
}

// Counts a response, which ends at `response_end` and was seen at `now`: it must be what its request said. Where
// requests are given up, one may come too late: another request has its place.
inline void take_response(EchoClientState& s, EchoClientLane& lane, const std::byte* response_end, Picos now) {
  std::uint64_t tag;
  std::memcpy(&tag, response_end - kTagBytes, kTagBytes);
  ++lane.answered;
  if (s.give_up > Picos(0) && number_of(tag) <= lane.settled) return;
  const std::uint64_t slot = (number_of(tag) - 1) % lane.requests.size();
  if (s.measured) s.latency.record(now - lane.asked[slot]);
  const std::byte* const asked = lane.out.end_of(slot);
  const std::uint32_t compared = s.validate ? s.size : kTagBytes;
  if (std::memcmp(response_end - compared, asked - compared, compared) != 0) ++s.wrong;
  lane.settled = s.give_up > Picos(0) && number_of(tag) <= lane.sent ? number_of(tag) : lane.settled + 1;
}

// Takes the responses that have been written by now, and calls `count_one` after each; `over_gaps`: also those behind
// some that are not there. Returns whether there were any.
template <Node N, class Count>
inline bool collect_written(N& node, EchoClientState& s, bool over_gaps, Count&& count_one) {
  bool moved = false;
  for (EchoClientLane& lane : s.lanes) {
    while (lane.settled < lane.sent) {
      const std::uint64_t outstanding = lane.requests.size();
      const std::uint64_t number = next_written(lane.in, outstanding, lane.settled, over_gaps ? outstanding : 1);
      if (number == 0) break;
      take_response(s, lane, lane.in.end_of((number - 1) % outstanding), node.now());
      count_one();
      moved = true;
    }
  }
  return moved;
}

// Gives up the requests of lanes on which no response has come for long enough. Whether there were some.
inline bool give_up_lost(EchoClientState& s, Picos now) {
  bool some = false;
  for (EchoClientLane& lane : s.lanes) {
    if (lane.settled == lane.sent || lane.settled != lane.seen) {
      lane.seen = lane.settled;
      lane.since = now;
    } else if (now - lane.since >= s.give_up) {
      lane.settled = lane.sent;
      some = true;
    }
  }
  return some;
}

// Asks until the stop or the goal, then waits for the responses to come.
template <Node N>
void echo_client_loop(N& node, EchoClientState& s, const RunControl& control, ThreadTally& tally) {
  MeasuredInterval window(tally, s.goal);
  IdleWait wait(s.cq, s.channel, tally);
  std::uint64_t ops = 0;
  bool running = true;
  const bool lossy = s.give_up > Picos(0);
  const auto count_one = [&] {
    tally.done_ops.store(++ops, std::memory_order_relaxed);
    if (window.see(node, control.phase.load(std::memory_order_relaxed), ops)) running = false;
    s.measured = window.measuring();
  };
  const auto on_recv = [&](const ibv_wc& wc) {
    EchoClientLane& lane = s.lanes[recv_queue(wc.wr_id)];
    take_response(s, lane, lane.in.end_of(recv_place(wc.wr_id)), node.now());
    count_one();
    return post_recv(lane.recvs, recv_queue(wc.wr_id), tally.end);
  };
  for (const EchoClientLane& lane : s.lanes) {
    if (s.by_memory) node.watch(lane.in.begin, lane.in.stride * lane.requests.size());
  }
  for (;;) {
    if (running && !ask(node, s, tally.end)) return;
    bool moved = false, open = false, due = !s.by_memory;
    if (s.by_memory) {
      node.poll_memory(s.lanes.size());
      moved = collect_written(node, s, false, count_one);
      if (lossy && !moved) moved = collect_written(node, s, true, count_one);
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
    if (must_give_up(control, tally.end)) return;
    if (lossy && give_up_lost(s, node.now())) continue;
    if (lossy && s.channel == nullptr) {
      node.idle_until(node.now() + s.give_up);
    } else {
      wait.idle(node);
    }
  }
}

}  // namespace verbscope
