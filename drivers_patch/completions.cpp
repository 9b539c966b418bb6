#include "drivers_patch/completions.hpp"

#include <cstddef>
#include <cstring>

#include "drivers_patch/data_path.hpp"

namespace verbscope::driver {
namespace {

// Status and opcode, as they lie in a completion: of a send without an error both are without these bits.
std::uint64_t result_word(const ibv_wc& wc) {
  static_assert(offsetof(ibv_wc, opcode) == offsetof(ibv_wc, status) + 4 && sizeof wc.opcode == 4);
  std::uint64_t kind;
  std::memcpy(&kind, &wc.status, sizeof kind);
  return kind;
}
constexpr std::uint64_t kNoGoodSend = std::uint64_t{IBV_WC_RECV} << 32 | 0xffffffff;

[[gnu::noinline]] void count_other(QpCounts& counts, const ibv_wc& wc) {
  if (wc.status != IBV_WC_SUCCESS) return count_failed(counts, wc.status);
  count_recv(counts, wc.opcode, wc.byte_len);
}

// Counts the completions of one QP that follow one another, from `wc` on. Yields what is behind them.
inline const ibv_wc* count_run(QpCounts& counts, const ibv_wc* wc, const ibv_wc* end) {
  const std::uint32_t number = wc->qp_num;
  const ibv_wc* first = wc;  // behind those that are no sends, as if they had not been
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
