// The data path of atomic_rate --probe_slots: runs the measurements of a SlotSurvey on two QPs.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>

#include "microbench/atomic/lock_slots.hpp"
#include "microbench/loop/send_queue.hpp"

namespace verbscope {

inline constexpr std::uint64_t kProbeOps = 512;  // counted operations per measurement

struct SlotProbe {
  ibv_cq* cq = nullptr;
  std::array<SendQueue, 2> queues;     // depth: outstanding operations
  std::array<ibv_send_wr, 2> atomics;  // prebuilt, except for the address, and posted repeatedly
  std::array<ibv_send_wr, 2> reads;
  std::uint64_t base = 0;  // peer's address of the survey's offset 0
  std::uint64_t done = 0;  // operations of all measurements
};

// Returns the rate in operations per second, or a negative number with tally.end set on failure. The queues are full
// before the count begins and until it ends.
template <Node N>
double measure_slots(N& node, SlotProbe& s, const SlotMeasurement& what, const RunControl& control,
                     ThreadTally& tally) {
  const bool reads = what.kind == SlotMeasurement::Kind::reads;
  const std::size_t used = what.kind == SlotMeasurement::Kind::solo ? 1 : 2;
  auto& requests = reads ? s.reads : s.atomics;
  for (std::size_t i = 0; i < used; ++i) {
    const std::uint64_t address = s.base + (i == 0 ? what.first : what.second);
    (reads ? requests[i].wr.rdma.remote_addr : requests[i].wr.atomic.remote_addr) = address;
  }
  const std::uint64_t warm = 4 * used * s.queues[0].depth;
  std::uint64_t completed = 0, counted_from = 0, counted = 0;
  Picos begin{0}, end{0};
  IdleWait wait(s.cq, nullptr, tally);
  while (counted == 0 || s.queues[0].due + s.queues[1].due > 0) {
    for (std::uint32_t i = 0; counted == 0 && i < used; ++i) {
      while (s.queues[i].room > 0) {
        if (!post_one(s.queues[i], requests[i], tally.end)) return -1;
      }
    }
    const int count = reap(s.cq, s.queues, tally.end, kNoRecv);
    if (count < 0) return -1;
    if (count == 0) {
      if (!wait.idle_unless_quit(node, control)) return -1;
      continue;
    }
    completed += static_cast<std::uint64_t>(count);
    s.done += static_cast<std::uint64_t>(count);
    tally.done_ops.store(s.done, std::memory_order_relaxed);
    if (counted_from == 0 && completed >= warm) {
      counted_from = completed;
      begin = node.now();
    } else if (counted == 0 && counted_from != 0 && completed - counted_from >= kProbeOps) {
      counted = completed - counted_from;
      end = node.now();
    }
  }
  return static_cast<double>(counted) / to_seconds(end - begin);
}

// Measures until the survey is complete. The measured interval of the run is that of the whole survey, whatever the
// phase of the controller.
template <Node N>
void probe_loop(N& node, SlotProbe& s, SlotSurvey& survey, const RunControl& control, ThreadTally& tally) {
  while (control.phase.load(std::memory_order_relaxed) == Phase::warmup) {
    if (must_give_up(control, tally.end)) return;
    node.idle();
  }
  MeasuredInterval interval(tally, MeasuredInterval::kNoGoal);
  interval.see(node, Phase::measure, 0);
  while (const auto next = survey.next()) {
    const double rate = measure_slots(node, s, *next, control, tally);
    if (rate < 0) return;
    survey.add_rate(rate);
  }
  interval.see(node, Phase::stop, s.done);
}

}  // namespace verbscope
