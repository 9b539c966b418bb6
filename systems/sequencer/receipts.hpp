// The clients of all designs have these in common: the account of the values that a thread received, and the loop that
// keeps requests outstanding, takes answers, and asks again for those that do not come.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "common/histogram.hpp"
#include "common/mix.hpp"
#include "microbench/loop/lane_queue.hpp"
#include "systems/sequencer/value_audit.hpp"

namespace verbscope {

// A request that waits for its answer.
struct Asked {
  Picos first{0};           // when it was asked
  Picos last{0};            // when it was asked last
  std::uint64_t floor = 0;  // its value is at least this: above all that its client had then
  std::uint64_t number = 0;
  bool open = false;
};

// The values that one thread received.
struct Receipts {
  explicit Receipts(ValueAudit& values) : audit(&values), next(values.first()) {}

  // An answer to a request. Values are above all that their client had when it asked, and nobody has them twice.
  void take(std::uint64_t value, const Asked& request, Picos now, bool measured) {
    if (value < request.floor) [[unlikely]]
      ++disordered;
    keep(value);
    ++answers;
    if (measured) latency.record(now - request.first);
  }
  // An answer to a request that had one: asked again too early.
  void take_surplus(std::uint64_t value) {
    keep(value);
    ++surplus;
  }

  std::uint64_t received() const { return answers + surplus; }

  ValueAudit* audit;
  Histogram latency;
  std::uint64_t next;             // one more than the largest value so far
  std::uint64_t answers = 0;      // one for each request that is done
  std::uint64_t surplus = 0;      // further answers
  std::uint64_t repeated = 0;     // values that somebody had already, or that were never handed out
  std::uint64_t disordered = 0;   // values that came before one that their client had when it asked
  std::uint64_t fingerprint = 0;  // sum of mix() over all values
  std::uint64_t asked = 0;        // requests
  std::uint64_t retries = 0;      // requests sent again

 private:
  void keep(std::uint64_t value) {
    if (!audit->note(value)) [[unlikely]]
      ++repeated;
    fingerprint += mix(value);
    next = std::max(next, value + 1);
  }
};

struct ClientState {
  ibv_cq* cq = nullptr;
  std::span<LaneQueue> queues;
  Picos retry_after{0};
  std::uint64_t goal = MeasuredWindow::kNoGoal;
  Receipts receipts;
};

// Takes up to `most` completions for `asker`. Returns how many requests are done, or -1 with `end` set. `moved`: there
// were any.
template <class Asker>
inline int take_answers(Asker& asker, ClientState& s, std::uint64_t most, Picos now, bool measured, bool& moved,
                        RunEnd& end) {
  const std::uint64_t before = s.receipts.answers;
  const int count = take_completions<kCompletionBatch>(s.cq, most, end, [&](const ibv_wc& wc) {
    if (is_send_id(wc.wr_id)) retire_signaled(s.queues[sent_queue(wc.wr_id)]);
    return asker.take(wc, now, measured, end);
  });
  moved = count > 0;
  return count < 0 ? count : static_cast<int>(s.receipts.answers - before);
}

// Asks until the stop or the goal, then waits for the answers to come. Asker has `ask(now, end)`, which asks
// until enough is outstanding, `take(wc, now, measured, end)` and `ask_again(now, end)`, which are false after a
// failure, and `open()`, the requests that wait.
template <Node N, class Asker>
void client_loop(N& node, Asker& asker, ClientState& s, const RunControl& control, ThreadTally& tally) {
  MeasuredWindow window(tally, s.goal);
  std::uint64_t ops = 0;
  bool running = true;
  Picos check_at = node.now() + s.retry_after;
  for (;;) {
    const Picos now = node.now();
    if (running && !asker.ask(now, tally.end)) return;
    if (!running && asker.open() == 0) return;
    const Phase phase = control.phase.load(std::memory_order_relaxed);
    bool moved = false;
    const int done = take_answers(asker, s, window.left(ops), node.now(), in_window(phase), moved, tally.end);
    if (done < 0) return;
    if (done > 0) {
      ops += static_cast<std::uint64_t>(done);
      tally.done_ops.store(ops, std::memory_order_relaxed);
      if (window.see(node, phase, ops)) running = false;
    }
    if (s.retry_after > Picos(0) && now >= check_at) [[unlikely]] {
      if (!asker.ask_again(now, tally.end)) return;
      check_at = now + s.retry_after / 4;
    }
    if (moved) continue;
    if (must_give_up(control, tally.end)) return;
    if (s.retry_after > Picos(0)) {
      node.relax_until(check_at);
    } else {
      node.relax();
    }
  }
}

}  // namespace verbscope
