// What the clients of a sequencer have in common: the account of the values that a thread received, and the loop that
// keeps requests outstanding, takes answers, and asks again for what does not come.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
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
  std::uint64_t next;             // after the largest value so far
  std::uint64_t answers = 0;      // one for each request that is done
  std::uint64_t surplus = 0;      // further answers
  std::uint64_t repeated = 0;     // values that somebody had already, or that were never handed out
  std::uint64_t disordered = 0;   // values that came before one that their client had when it asked
  std::uint64_t fingerprint = 0;  // of all values
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

inline bool fail_post(RunEnd& end, int error, std::uint32_t queue) {
  end = {.kind = EndKind::post_failed, .code = error, .queue = queue};
  return false;
}

// Takes up to `most` completions for `asker`. Returns how many requests are done, or -1 with `end` set. `moved`: there
// were any.
template <class Asker>
inline int take_answers(Asker& asker, ClientState& s, int most, Picos now, bool measured, bool& moved, RunEnd& end) {
  std::array<ibv_wc, 16> wcs;
  const int count = ibv_poll_cq(s.cq, std::min(most, static_cast<int>(wcs.size())), wcs.data());
  if (count < 0) [[unlikely]] {
    end = {.kind = EndKind::poll_failed, .code = -count};
    return -1;
  }
  moved = count > 0;
  const std::uint64_t before = s.receipts.answers;
  for (int i = 0; i < count; ++i) {
    const ibv_wc& wc = wcs[static_cast<std::size_t>(i)];
    const bool sent = (wc.wr_id & kSendId) != 0;
    if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
      end = {EndKind::completion_failed, wc.status, wc.vendor_err,
             static_cast<std::uint32_t>(sent ? wc.wr_id : wc.wr_id >> 32)};
      return -1;
    }
    if (sent) {
      LaneQueue& queue = s.queues[static_cast<std::uint32_t>(wc.wr_id)];
      queue.room += queue.signal_every;
      --queue.due;
    }
    if (!asker.take(wc, now, measured, end)) return -1;
  }
  return static_cast<int>(s.receipts.answers - before);
}

// Asks until the stop or the goal, then waits for the answers to come. Asker has `ask(now, end)`, which fills the
// window, `take(wc, now, measured, end)` and `ask_again(now, end)`, which are false after a failure, and `open()`, the
// requests that wait.
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
    const int most = static_cast<int>(std::min<std::uint64_t>(window.left(ops), 16));
    bool moved = false;
    const int done = take_answers(asker, s, most, node.now(), phase == Phase::measure, moved, tally.end);
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
    if (control.quit.load(std::memory_order_relaxed)) {
      tally.end = {.kind = EndKind::gave_up};
      return;
    }
    if (s.retry_after > Picos(0)) {
      node.relax_until(check_at);
    } else {
      node.relax();
    }
  }
}

}  // namespace verbscope
