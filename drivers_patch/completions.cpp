#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "drivers_patch/data_path.hpp"
#include "drivers_patch/layout.hpp"
#include "drivers_patch/process.hpp"
#include "drivers_patch/request_counts.hpp"

namespace verbscope::driver {
namespace {

// Counts completions of sends. `completions` > 0.
inline void count_sent(QpCounts& counts, std::uint64_t completions) {
  if (counts.send_completions == 0) [[unlikely]]
    note_poller(counts);
  add(counts.send_completions, completions);
  if (counts.qp->sample_target.load(std::memory_order_relaxed) != 0) [[unlikely]]
    sample_completed(counts);
}

// Counts a RECV with `bytes` in its buffer; a WRITE with immediate has none there.
inline void count_recv(QpCounts& counts, ibv_wc_opcode opcode, std::uint32_t bytes) {
  const std::uint64_t shape = opcode == IBV_WC_RECV_RDMA_WITH_IMM ? kWithoutMemory : bytes;
  if (shape == counts.last_received) [[likely]]
    return add(*counts.last_received_count);
  count_received(counts, shape, 1);
}

// Status and opcode of a completion in one word. A successful send has none of the bits of kNoGoodSend.
std::uint64_t result_word(const ibv_wc& wc) {
  static_assert(offsetof(ibv_wc, opcode) == offsetof(ibv_wc, status) + 4 && sizeof wc.opcode == 4);
  std::uint64_t kind;
  std::memcpy(&kind, &wc.status, sizeof kind);
  return kind;
}
constexpr std::uint64_t kNoGoodSend = std::uint64_t{IBV_WC_RECV} << 32 | 0xffffffff;

// The opcode of a failed completion is undefined.
void count_failed(QpCounts& counts, ibv_wc_status status) {
  counts.qp->no_samples = true;
  add(counts.by_status[std::min<std::size_t>(status, kStatuses - 1)]);
}

[[gnu::noinline]] void count_other(QpCounts& counts, const ibv_wc& wc) {
  if (wc.status != IBV_WC_SUCCESS) return count_failed(counts, wc.status);
  count_recv(counts, wc.opcode, wc.byte_len);
}

// A number that changes if this thread has posted: the count of requests like its recent ones, on its recent QP.
std::uint64_t recently_posted() {
  const QpCounts* const counts = recent_qp.counts;
  if (counts == nullptr) return 0;
  const std::uint64_t* const alone = counts->recent[0].count;
  const std::uint64_t* const in_list = counts->in_lists[0].count;
  return (alone == nullptr ? 0 : *alone) + (in_list == nullptr ? 0 : *in_list);
}

// A thread waits if it finds a queue empty twice and has neither posted nor polled another queue in between.
void count_empty(PollCounts& counts, const void* cq) {
  add(counts.empty);
  const std::uint64_t posted = recently_posted();
  const bool waits = recent_empty.cq == cq && recent_empty.posted == posted;
  if (!waits) {
    add(counts.in_passing);
  } else if (!recent_empty.again) {
    add(counts.in_passing, ~std::uint64_t{0});  // the previous poll was waiting, too
  }
  recent_empty = {cq, posted, waits};
}

[[gnu::noinline]] int finish_empty_poll(PollCounts& counts, const ibv_cq* cq, int result) {
  if (result == 0) {
    count_empty(counts, cq);
  } else {
    add(counts.failed);
  }
  return result;
}

// Counts consecutive completions of one QP, starting at `wc`. Returns the first one after them.
inline const ibv_wc* count_run(QpCounts& counts, const ibv_wc* wc, const ibv_wc* end) {
  const std::uint32_t number = wc->qp_num;
  const ibv_wc* first = wc;  // advanced by one for each completion that is not a successful send
  do {
    if ((result_word(*wc) & kNoGoodSend) != 0) {
      count_other(counts, *wc);
      ++first;
    }
    ++wc;
  } while (wc != end && wc->qp_num == number);
  if (wc != first) count_sent(counts, static_cast<std::uint64_t>(wc - first));
  return wc;
}

ibv_cq* plain(ibv_cq_ex* cq) {
  return reinterpret_cast<ibv_cq*>(cq);  // like ibv_cq_ex_to_cq
}

// Valid as long as the queue exists.
const PollCalls& calls_of(ibv_cq_ex* cq) {
  return find_record<CqRecord>(cq)->calls;
}

// Counts the current completion of the queue. QP number and length are available only if the program requested them
// when it created the queue.
void count_current(PollCounts& counts, ibv_cq_ex* cq) {
  ++counts.batch;
  add(counts.completions);
  QpCounts& of_qp = cq->read_qp_num == nullptr
                        ? *counts.unknown
                        : numbered_counts(counts.number_tag | (cq->read_qp_num(cq) & 0xffffff), *counts.unknown);
  if (cq->status != IBV_WC_SUCCESS) return count_failed(of_qp, cq->status);
  const ibv_wc_opcode opcode = cq->read_opcode(cq);
  if ((opcode & IBV_WC_RECV) == 0) return count_sent(of_qp, 1);
  count_recv(of_qp, opcode, cq->read_byte_len == nullptr ? 0 : cq->read_byte_len(cq));
}

int counted_start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attr) {
  const int result = calls_of(cq).start(cq, attr);
  PollCounts& counts = poll_counts(plain(cq));
  counts.batch = 0;
  if (result == 0) {
    recent_empty.cq = nullptr;
    count_current(counts, cq);
  } else if (result == ENOENT) {
    count_empty(counts, cq);
  } else {
    add(counts.failed);
  }
  return result;
}

int counted_next_poll(ibv_cq_ex* cq) {
  const int result = calls_of(cq).next(cq);
  if (result == 0) count_current(poll_counts(plain(cq)), cq);
  return result;
}

void counted_end_poll(ibv_cq_ex* cq) {
  PollCounts& counts = poll_counts(plain(cq));
  add(counts.polls);
  add_class(counts.by_batch, counts.batch);
  counts.batch = 0;
  calls_of(cq).end(cq);
}

}  // namespace

int counted_poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) {
  PollCounts& counts = poll_counts(cq);
  const int polled = counts.poll(cq, entries, wc);
  if (polled <= 0) return finish_empty_poll(counts, cq, polled);
  recent_empty.cq = nullptr;
  add(counts.polls);
  add(counts.completions, static_cast<std::uint64_t>(polled));
  add_class(counts.by_batch, static_cast<std::uint64_t>(polled));
  const ibv_wc* const end = wc + polled;
  for (const ibv_wc* next = wc; next != end;) {
    next = count_run(numbered_counts(counts.number_tag | next->qp_num, *counts.unknown), next, end);
  }
  return polled;
}

void wrap_polling(ibv_cq_ex& cq, PollCalls& calls) {
  calls = {cq.start_poll, cq.next_poll, cq.end_poll};
  wrap_call(cq.start_poll, &counted_start_poll);
  wrap_call(cq.next_poll, &counted_next_poll);
  wrap_call(cq.end_poll, &counted_end_poll);
}

}  // namespace verbscope::driver
