// The data path of a client of kv_atomic: GETs and PUTs outstanding on each QP, each with a state of its own.
//
// A GET is a READ of the value; one that is torn is READ again. A PUT fetches and adds to the lock and is given a
// ticket (a ticket lock over RDMA as in Yoon, Chowdhury and Mozafari, SIGMOD 2018). While another's is served it READs
// the lock again and again. Then it WRITEs the value, and fetches and adds to the lock again, which serves the next.
//
// A client that died holds its tickets for ever. A client that sees no ticket served for the time of the lease skips
// the one that is being served by a compare-and-swap of the whole lock, so that only one of several succeeds. A value
// that is still torn after that time was left half written, and the GET is given up.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "common/histogram.hpp"
#include "microbench/loop/choice.hpp"
#include "microbench/loop/send_queue.hpp"
#include "systems/kv_atomic/layout.hpp"

namespace verbscope {

enum class KvStep : std::uint8_t { reading, locking, waiting, skipping, unlocking };

// One QP, and where the region of the server is.
struct KvLane {
  ibv_qp* qp = nullptr;
  ibv_qp_ex* builder = nullptr;  // posts with it, when there is one
  std::uint64_t base = 0;        // the peer's address of the first record
};

// One operation. Its requests are prebuilt but for the addresses, and one signaled request is outstanding.
struct KvOperation {
  ibv_send_wr read{}, lock{}, look{}, skip{}, write{}, unlock{};
  ibv_sge value_segment{}, word_segment{};
  std::byte* value = nullptr;     // what was READ, or is written
  std::uint64_t* word = nullptr;  // what an atomic returned, or a look at the lock found
  std::uint32_t lane = 0;
  KvStep step = KvStep::reading;
  std::uint64_t key = 0;
  std::uint32_t ticket = 0;
  std::uint32_t served = 0;  // the ticket that was being served at `seen_at`, for the first time
  Picos seen_at{0};
  Picos begin{0};
};

// Counts of the whole run, but for those called window_, which are of the measured interval.
struct KvCounts {
  std::uint64_t gets = 0, puts = 0;
  std::uint64_t lock_retries = 0;  // looks at a lock that was still taken
  std::uint64_t torn_reads = 0;    // READs of a value while it was written, done again
  std::uint64_t skipped = 0;       // tickets of others skipped after the lease
  std::uint64_t turns_lost = 0;    // own tickets that were skipped while waiting; taken again
  std::uint64_t given_up = 0;      // GETs whose value stayed torn for the lease
  std::uint64_t wrong = 0;         // values of no version of the key; locks that their holder lost
  std::uint64_t window_gets = 0, window_puts = 0;
  std::uint64_t window_looks = 0, window_torn = 0;  // READs of locks, and READs of values that were torn
};

struct KvState {
  KvState(const KvLayout& kv_layout, const KvValues& kv_values, std::uint64_t seed)
      : layout(kv_layout),
        values(kv_values),
        keys(layout.keys(), true, mix(seed), 0),
        percents(100, true, mix(~seed), 0) {}

  ibv_cq* cq = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::span<KvLane> lanes;
  std::span<KvOperation> operations;
  KvLayout layout;
  KvValues values;
  Choice keys, percents;
  std::uint32_t put_percent = 0;
  bool emulate = false;
  Picos lease{0};
  std::uint64_t goal = MeasuredInterval::kNoGoal;
  KvCounts counts;
  Histogram get_latency, put_latency;  // in the measured interval
  std::uint32_t under_way = 0;
  bool running = true;
  bool measuring = false;
};

inline bool post_kv(KvState& s, std::uint64_t index, ibv_send_wr& first, KvStep step, RunEnd& end) {
  KvOperation& op = s.operations[index];
  const KvLane& lane = s.lanes[op.lane];
  op.step = step;
  return post_list(lane.qp, lane.builder, &first, op.lane, end);
}

// The next operation: a GET or a PUT of a key chosen at random.
inline bool start_kv(KvState& s, std::uint64_t index, Picos now, RunEnd& end) {
  KvOperation& op = s.operations[index];
  const std::uint64_t base = s.lanes[op.lane].base;
  op.key = s.keys.next();
  op.begin = now;
  const std::uint64_t value = base + s.layout.value_of(op.key);
  if (s.percents.next() >= s.put_percent) {
    op.read.wr.rdma.remote_addr = value;
    return post_kv(s, index, op.read, KvStep::reading, end);
  }
  const std::uint64_t lock = base + s.layout.lock_of(op.key);
  op.lock.wr.atomic.remote_addr = op.skip.wr.atomic.remote_addr = op.unlock.wr.atomic.remote_addr = lock;
  op.look.wr.rdma.remote_addr = lock;
  op.write.wr.rdma.remote_addr = value;
  return post_kv(s, index, op.lock, KvStep::locking, end);
}

inline bool finish_kv(KvState& s, std::uint64_t index, Picos now, RunEnd& end) {
  KvOperation& op = s.operations[index];
  const bool got = op.step == KvStep::reading;
  ++(got ? s.counts.gets : s.counts.puts);
  if (s.measuring) {
    ++(got ? s.counts.window_gets : s.counts.window_puts);
    (got ? s.get_latency : s.put_latency).record(now - op.begin);
  }
  if (s.running) return start_kv(s, index, now, end);
  --s.under_way;
  return true;
}

inline bool end_read(KvState& s, std::uint64_t index, Picos now, RunEnd& end) {
  KvOperation& op = s.operations[index];
  const KvReading reading = s.values.look_at(op.value, op.key);
  if (reading.finding == KvFinding::torn) {
    ++s.counts.torn_reads;
    if (s.measuring) ++s.counts.window_torn;
    if (now - op.begin <= s.lease) return post_kv(s, index, op.read, KvStep::reading, end);
    ++s.counts.given_up;
  }
  if (reading.finding == KvFinding::wrong) ++s.counts.wrong;
  return finish_kv(s, index, now, end);
}

// `lock` is the content of the lock. Writes the value if it serves the operation's ticket, else READs the lock again.
inline bool await_turn(KvState& s, std::uint64_t index, std::uint64_t lock, Picos now, RunEnd& end) {
  KvOperation& op = s.operations[index];
  const std::uint32_t served = now_served(lock);
  if (served == op.ticket) {
    if (s.emulate) return post_kv(s, index, op.unlock, KvStep::unlocking, end);
    s.values.fill(op.value, op.key, std::uint64_t{op.ticket} + 1);
    return post_kv(s, index, op.write, KvStep::unlocking, end);  // the unlocking is behind it in the list
  }
  if (op.step != KvStep::locking) ++s.counts.lock_retries;
  if (op.step == KvStep::locking || served != op.served) {
    op.served = served;
    op.seen_at = now;
  }
  if (static_cast<std::int32_t>(served - op.ticket) > 0) {
    ++s.counts.turns_lost;
    return post_kv(s, index, op.lock, KvStep::locking, end);
  }
  if (now - op.seen_at <= s.lease) return post_kv(s, index, op.look, KvStep::waiting, end);
  op.skip.wr.atomic.compare_add = lock;
  op.skip.wr.atomic.swap = lock + kServeNext;
  return post_kv(s, index, op.skip, KvStep::skipping, end);
}

// The outstanding request of operation `index` has completed.
inline bool advance_kv(KvState& s, std::uint64_t index, Picos now, RunEnd& end) {
  KvOperation& op = s.operations[index];
  switch (op.step) {
    case KvStep::reading:
      return end_read(s, index, now, end);
    case KvStep::locking:
      op.ticket = next_ticket(*op.word);
      return await_turn(s, index, *op.word, now, end);
    case KvStep::waiting:
      if (s.measuring) ++s.counts.window_looks;
      return await_turn(s, index, *op.word, now, end);
    case KvStep::skipping:
      if (*op.word == op.skip.wr.atomic.compare_add) ++s.counts.skipped;
      return post_kv(s, index, op.look, KvStep::waiting, end);
    case KvStep::unlocking:
      if (now_served(*op.word) != op.ticket) ++s.counts.wrong;
      return finish_kv(s, index, now, end);
  }
  return true;
}

// Takes up to `most` completions. Returns how many, or -1 with `end` set.
template <Node N>
int advance_all(N& node, KvState& s, std::uint64_t most, RunEnd& end) {
  Picos now{0};
  return take_completions<kCompletionBatch>(s.cq, most, end, [&](const ibv_wc& wc) {
    if (now == Picos(0)) now = node.now();
    return advance_kv(s, sent_request(wc.wr_id), now, end);
  });
}

// Clears the counts of the measured interval.
inline void clear_interval_counts(KvState& s) {
  s.counts.window_gets = s.counts.window_puts = s.counts.window_looks = s.counts.window_torn = 0;
  for (Histogram* latency : {&s.get_latency, &s.put_latency}) {
    if (latency->count() > 0) latency->clear();
  }
}

// Keeps as many operations outstanding as may be until the stop or the goal, then waits for what is under way: nobody
// leaves a lock taken.
template <Node N>
void kv_loop(N& node, KvState& s, const RunControl& control, ThreadTally& tally) {
  MeasuredInterval interval(tally, s.goal);
  IdleWait wait(s.cq, s.channel, tally);
  for (; s.under_way < s.operations.size(); ++s.under_way) {
    if (!start_kv(s, s.under_way, node.now(), tally.end)) return;
  }
  while (s.under_way > 0) {
    const int count = advance_all(node, s, interval.left(s.counts.gets + s.counts.puts), tally.end);
    if (count < 0) return;
    if (count == 0) {
      if (!wait.idle_unless_quit(node, control)) return;
      continue;
    }
    const std::uint64_t ops = s.counts.gets + s.counts.puts;
    tally.done_ops.store(ops, std::memory_order_relaxed);
    if (interval.see(node, control.phase.load(std::memory_order_relaxed), ops)) s.running = false;
    if (interval.measuring() && !s.measuring) clear_interval_counts(s);  // another may have preceded it
    s.measuring = interval.measuring();
  }
}

}  // namespace verbscope
