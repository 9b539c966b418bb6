#include "drivers_patch/completions.hpp"

#include "drivers_patch/data_path.hpp"

namespace verbscope::driver {
namespace {

// Counts the completions of one QP that follow one another, from `wc` on. Yields what is behind them.
const ibv_wc* count_run(QpCounts& counts, const ibv_wc* wc, const ibv_wc* end) {
  const std::uint32_t number = wc->qp_num;
  std::uint64_t sent = 0;
  do {
    if (wc->status != IBV_WC_SUCCESS) [[unlikely]] {
      count_failed(counts, wc->status);
    } else if ((wc->opcode & IBV_WC_RECV) != 0) {
      count_recv(counts, wc->opcode, wc->byte_len);
    } else {
      ++sent;
    }
    ++wc;
  } while (wc != end && wc->qp_num == number);
  if (sent > 0) count_sent(counts, sent);
  return wc;
}

}  // namespace

void count_failed(QpCounts& counts, ibv_wc_status status) {
  counts.qp->no_samples = true;
  add(counts.by_status[std::min<std::size_t>(status, kStatuses - 1)]);
}

int counted_poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) {
  PollCounts& counts = poll_counts(cq);
  const int polled = counts.poll(cq, entries, wc);
  if (polled <= 0) {
    add(polled == 0 ? counts.empty : counts.failed);
    return polled;
  }
  add(counts.polls);
  add(counts.completions, static_cast<std::uint64_t>(polled));
  add_class(counts.by_batch, static_cast<std::uint64_t>(polled));
  const ibv_wc* const end = wc + polled;
  for (const ibv_wc* next = wc; next != end;) {
    next = count_run(numbered_counts(counts.number_tag | next->qp_num, *counts.unknown), next, end);
  }
  return polled;
}

}  // namespace verbscope::driver
