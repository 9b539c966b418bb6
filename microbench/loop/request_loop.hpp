// The loops of request systems: a client keeps requests outstanding, and a server serves requests. Each system supplies
// the functions that send, take and check messages. Data path.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "microbench/bench/control.hpp"
#include "microbench/loop/idle_wait.hpp"

namespace verbscope {

// Counts the operations that a client has done, and notes its measured interval.
class OperationMeter {
 public:
  OperationMeter(const RunControl& control, ThreadTally& tally, std::uint64_t goal)
      : control_(control), tally_(tally), interval_(tally, goal) {}

  // False after the stop, or when the goal is reached: no more requests are sent.
  bool running() const { return !interval_.over(); }
  bool measuring() const { return interval_.measuring(); }
  // Operations that may still be done before the goal is reached.
  std::uint64_t left() const { return interval_.left(ops_); }
  Phase phase() const { return control_.phase.load(std::memory_order_relaxed); }
  Phase seen() const { return interval_.seen(); }

  void add(std::uint64_t count) {
    ops_ += count;
    tally_.done_ops.store(ops_, std::memory_order_relaxed);
  }
  // Call after completions: a bound of the interval is noted where the phase has changed.
  template <Node N>
  void note(N& node, Phase phase) {
    interval_.see(node, phase, ops_);
  }
  // Both, for operations that have just completed. True: a measured interval has begun.
  template <Node N>
  bool add_and_note(N& node, Phase phase, std::uint64_t count) {
    const bool before = measuring();
    add(count);
    note(node, phase);
    return measuring() && !before;
  }

 private:
  const RunControl& control_;
  ThreadTally& tally_;
  MeasuredInterval interval_;
  std::uint64_t ops_ = 0;
};

// How long none of the requests on a queue has been settled, where requests can be lost.
class SilenceTimer {
 public:
  // True if requests are outstanding and none was settled for `limit`. `sent`, `settled`: their numbers so far.
  bool expired(std::uint64_t sent, std::uint64_t settled, Picos now, Picos limit) {
    if (settled != sent && settled == settled_) return now - since_ >= limit;
    settled_ = settled;
    since_ = now;
    return false;
  }

 private:
  std::uint64_t settled_ = 0;
  Picos since_{0};
};

// What client_loop() needs of every client.
struct ClientLoopState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;  // null: the thread spins
  std::uint64_t goal = MeasuredInterval::kNoGoal;
};

// Sends requests until the stop or the goal, then waits until none is outstanding. How it ended is in tally.end. Client
// is a ClientLoopState with
// - ask(node, end): sends requests until enough are outstanding,
// - drained(): nothing is outstanding,
// - take(node, meter, end): takes and counts completed requests; returns their number, or -1,
// - wait(node, idle, end): nothing has arrived.
// ask() and wait() return false, and take() -1, with `end` set after a failure.
template <Node N, class Client>
void client_loop(N& node, Client& client, const RunControl& control, ThreadTally& tally) {
  OperationMeter meter(control, tally, client.goal);
  IdleWait idle(client.cq, client.channel, tally);
  for (;;) {
    if (meter.running() && !client.ask(node, tally.end)) return;
    if (!meter.running() && client.drained()) return;
    const int taken = client.take(node, meter, tally.end);
    if (taken < 0) return;
    if (taken > 0) continue;
    if (must_give_up(control, tally.end) || !client.wait(node, idle, tally.end)) return;
  }
}

// What server_loop() needs of every server.
struct ServerLoopState {
  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;  // null: the thread spins
  std::uint64_t served = 0;             // requests, in the whole run
  bool measured = false;                // this pass is in the measured interval

  // A measured interval begins: counts of one before do not stand.
  void begin_interval() {}
};

template <class Server>
inline void begin_pass(Server& s, const RunControl& control) {
  const bool measured = in_interval(control.phase.load(std::memory_order_relaxed));
  if (measured && !s.measured) [[unlikely]]
    s.begin_interval();
  s.measured = measured;
}

// A wr_id has the place of its queue in `queues`, for SENDs and RECVs alike; a report names the thread's lane.
template <class Server>
inline void name_failed_lane(const Server& s, RunEnd& end) {
  if (end.kind == EndKind::completion_failed) end.queue = s.queues[end.queue].index;
}

// Serves until the order to quit. Server is a ServerLoopState with `queues`, its SendQueues. `pass(node, s, end)`
// serves the requests that are there and never waits for more: it returns a positive number if anything moved, or -1
// with `end` set.
template <Node N, class Server, class Pass>
void server_loop(N& node, Server& s, const RunControl& control, ThreadTally& tally, Pass&& pass) {
  IdleWait idle(s.cq, s.channel, tally);
  for (;;) {
    begin_pass(s, control);
    const int moved = pass(node, s, tally.end);
    if (moved < 0) {
      name_failed_lane(s, tally.end);
      return;
    }
    if (moved > 0) {
      tally.done_ops.store(s.served, std::memory_order_relaxed);
      continue;
    }
    if (!idle.idle_unless_quit(node, control)) return;
  }
}

}  // namespace verbscope
