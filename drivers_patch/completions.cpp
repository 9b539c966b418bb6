#include "drivers_patch/completions.hpp"

#include <cstddef>
#include <cstring>

#include "drivers_patch/data_path.hpp"

namespace verbscope::driver {
namespace {

// Status and opcode of a completion in one word. A successful send has none of the bits of kNoGoodSend.
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

// A number that changes if this thread has posted: the count of requests like its recent ones, on its recent QP.
std::uint64_t posted_of_late() {
  const QpCounts* const counts = recent_qp.counts;
  if (counts == nullptr) return 0;
  const std::uint64_t* const alone = counts->recent[0].count;
  const std::uint64_t* const in_list = counts->in_lists[0].count;
  return (alone == nullptr ? 0 : *alone) + (in_list == nullptr ? 0 : *in_list);
}

[[gnu::noinline]] int finish_without(PollCounts& counts, const ibv_cq* cq, int result) {
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

}  // namespace

// A thread waits if it finds a queue empty twice and has neither posted nor polled another queue in between.
void count_empty(PollCounts& counts, const void* cq) {
  add(counts.empty);
  const std::uint64_t posted = posted_of_late();
  const bool waits = recent_empty.cq == cq && recent_empty.posted == posted;
  if (!waits) {
    add(counts.in_passing);
  } else if (!recent_empty.again) {
    add(counts.in_passing, ~std::uint64_t{0});  // the previous poll was waiting, too
  }
  recent_empty = {cq, posted, waits};
}

void count_failed(QpCounts& counts, ibv_wc_status status) {
  counts.qp->no_samples = true;
  add(counts.by_status[std::min<std::size_t>(status, kStatuses - 1)]);
}

int counted_poll_cq(ibv_cq* cq, int entries, ibv_wc* wc) {
  PollCounts& counts = poll_counts(cq);
  const int polled = counts.poll(cq, entries, wc);
  if (polled <= 0) return finish_without(counts, cq, polled);
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

}  // namespace verbscope::driver
