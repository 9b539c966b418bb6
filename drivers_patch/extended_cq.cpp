#include "drivers_patch/extended_cq.hpp"

#include <cerrno>

#include "drivers_patch/completions.hpp"
#include "drivers_patch/process.hpp"

namespace verbscope::driver {
namespace {

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

void wrap_polling(ibv_cq_ex& cq, PollCalls& calls) {
  calls = {cq.start_poll, cq.next_poll, cq.end_poll};
  if (cq.start_poll != nullptr) cq.start_poll = &counted_start_poll;
  if (cq.next_poll != nullptr) cq.next_poll = &counted_next_poll;
  if (cq.end_poll != nullptr) cq.end_poll = &counted_end_poll;
}

}  // namespace verbscope::driver
