// The loop of a client: it keeps requests outstanding, takes answers, and asks again for those that do not come. Data
// path.
//
// State has `cq`, `queues`, `retry_after` (0: nothing is asked again), `goal`, `done()`, the requests that are done,
// and `begin_window()`, which forgets what was measured in a window before. Asker has `ask(now, end)`, which asks until
// enough is outstanding, `take(wc, now, measured, end)` and `ask_again(now, end)`, which are false after a failure, and
// `open()`, the requests that wait.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "microbench/loop/lane_queue.hpp"

namespace verbscope {

// Takes up to `most` completions for `asker`. Returns how many requests are done, or -1 with `end` set. `moved`: there
// were any.
template <class Asker, class State>
inline int take_answers(Asker& asker, State& s, std::uint64_t most, Picos now, bool measured, bool& moved,
                        RunEnd& end) {
  const std::uint64_t before = s.done();
  const int count = take_completions<kCompletionBatch>(s.cq, most, end, [&](const ibv_wc& wc) {
    if (is_send_id(wc.wr_id)) retire_signaled(s.queues[sent_queue(wc.wr_id)]);
    return asker.take(wc, now, measured, end);
  });
  moved = count > 0;
  return count < 0 ? count : static_cast<int>(s.done() - before);
}

// Asks until the stop or the goal, then waits for the answers to come. What is measured is what completes between the
// two moments that the thread's window notes.
template <Node N, class Asker, class State>
void client_loop(N& node, Asker& asker, State& s, const RunControl& control, ThreadTally& tally) {
  MeasuredWindow window(tally, s.goal);
  std::uint64_t ops = 0;
  bool running = true, measuring = false;
  Picos check_at = node.now() + s.retry_after;
  for (;;) {
    const Picos now = node.now();
    if (running && !asker.ask(now, tally.end)) return;
    if (!running && asker.open() == 0) return;
    const Phase phase = control.phase.load(std::memory_order_relaxed);
    bool moved = false;
    const int done = take_answers(asker, s, window.left(ops), node.now(), measuring, moved, tally.end);
    if (done < 0) return;
    if (done > 0) {
      ops += static_cast<std::uint64_t>(done);
      tally.done_ops.store(ops, std::memory_order_relaxed);
      if (window.see(node, phase, ops)) running = false;
      if (window.measuring() && !measuring) s.begin_window();
      measuring = window.measuring();
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
