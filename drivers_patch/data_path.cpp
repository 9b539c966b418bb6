#include "drivers_patch/data_path.hpp"

#include <utility>

#include "drivers_patch/process.hpp"
#include "drivers_patch/request_counts.hpp"

namespace verbscope::driver {
namespace {

constexpr std::uint64_t kMinusOne = ~std::uint64_t{0};  // a weight of -1

// Returns the end of a run of equal requests with one element each, from `wr` to at most `end`. Compares whole words,
// which needs the fewest instructions.
inline const ibv_send_wr* end_of_run(const ibv_send_wr* wr, const ibv_send_wr* end, std::uint64_t offset_mask,
                                     std::uint64_t& run) {
  const std::uint64_t kind = kind_word(*wr);
  const unsigned flags = wr->send_flags;
  const ibv_sge first = *wr->sg_list;
  const ibv_sge* element = nullptr;
  std::uint64_t length = 0;
  do {
    ++length;
    wr = wr->next;
  } while (wr != end && kind_word(*wr) == kind && wr->send_flags == flags &&
           (element = wr->sg_list)->length == first.length && ((element->addr ^ first.addr) & offset_mask) == 0);
  run = length;
  return wr;
}

// Counts requests of a list. Most are of one of two shapes.
inline void count_in_list(QpCounts& counts, const Shape& shape, std::uint64_t weight) {
  for (const RecentShape& recent : counts.in_lists) {
    if (recent.head == shape.head && recent.data == shape.data) return add(*recent.count, weight);
  }
  std::uint64_t* const count = count_of(counts, shape);
  if (count == nullptr) return count_shape(counts, shape, weight);
  counts.in_lists[1] = counts.in_lists[0];
  counts.in_lists[0] = {shape.head, shape.data, count};
  add(*count, weight);
}

// Counts the requests from `wr` to before `end` (a later request or null), run by run. Returns their number. Inline
// because a call costs as much as two requests.
[[gnu::always_inline]] inline std::uint64_t count_list(QpCounts& counts, const ibv_send_wr* wr, const ibv_send_wr* end,
                                                       bool alone, std::uint64_t weight) {
  std::uint64_t all = 0;
  while (wr != end) {
    const ibv_send_wr& first = *wr;
    const std::uint64_t head = shape_head(first) | (alone ? kAlone : 0);
    std::uint64_t run = 1;
    if (first.num_sge == 1) {
      wr = end_of_run(wr, end, counts.offset_mask, run);
      count_in_list(counts, {head, shape_data(*first.sg_list, counts.offset_mask)}, run * weight);
    } else {
      wr = wr->next;
      first.num_sge == 0 ? count_shape(counts, {head, 0}, weight) : count_several(counts, first, alone, weight);
    }
    all += run;
  }
  return all;
}

void note_list(QpCounts& counts, std::uint64_t length) {
  if (length < 2) return;
  add(counts.lists);
  add_class(counts.by_list, length);
}

bool needs_sample(const QpCounts& counts) {
  return counts.until_sample <= 0 || counts.sample_due;
}

bool any_signaled(const QpCounts& counts, const ibv_send_wr* wr) {
  if (counts.qp->facts.signal_all) return wr != nullptr;
  while (wr != nullptr && (wr->send_flags & IBV_SEND_SIGNALED) == 0) wr = wr->next;
  return wr != nullptr;
}

// Returns true if a request of the list, which has been counted, is sampled.
[[gnu::noinline]] bool sample(QpCounts& counts, const ibv_send_wr* wr) {
  if (wr != nullptr) sample_requests(counts, *wr);
  return sample_post(counts, any_signaled(counts, wr), 0);
}

// Caches the count of the shape of `wr`, which was posted alone, for the next request like it.
void cache_shape(QpCounts& counts, const ibv_send_wr& wr) {
  if (wr.num_sge != 1) return;
  const Shape shape{shape_head(wr), shape_data(*wr.sg_list, counts.offset_mask)};
  std::uint64_t* const count = count_of(counts, {shape.head | kAlone, shape.data});
  if (count == nullptr) return;
  if (counts.recent[0].count == nullptr) {
    counts.recent[0] = {shape.head, shape.data, count};
  } else {
    counts.recent[1] = {shape.head, shape.data, count};
  }
}

// True if `bad`, which a provider returned, is in the list.
bool contains(const ibv_send_wr* wr, const ibv_send_wr* bad) {
  while (wr != nullptr && wr != bad) wr = wr->next;
  return wr == bad;
}

// The provider accepted only the requests before `bad`: counts a shorter list.
void recount(QpCounts& counts, const ibv_send_wr* wr, const ibv_send_wr* bad, bool alone) {
  count_list(counts, wr, nullptr, alone, kMinusOne);
  add(counts.failed_posts);
  if (!contains(wr, bad)) return;
  const bool one = wr != nullptr && wr != bad && wr->next == bad;
  note_list(counts, count_list(counts, wr, bad, one, 1));
}

// Returns the counts of a QP and makes it the recent one. Counts of a destroyed QP have no object.
inline QpCounts& counts_for_post(ibv_qp* qp) {
  if (recent_qp.qp == qp && recent_qp.counts->object == qp) return *recent_qp.counts;
  QpCounts& counts = qp_counts(qp);
  add(counts.turns);
  recent_qp = {qp, &counts};
  return counts;
}

[[gnu::noinline]] int finish_failed(QpCounts& counts, const ibv_send_wr* wr, const ibv_send_wr* bad, bool sampled,
                                    int result) {
  if (sampled) forget_sample(counts);
  recount(counts, wr, bad, wr != nullptr && wr->next == nullptr);
  return result;
}

// A post of two or more requests.
[[gnu::noinline]] int post_several(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  QpCounts& counts = counts_for_post(qp);
  const std::uint64_t length = count_list(counts, wr, nullptr, false, 1);
  counts.until_sample -= static_cast<std::int64_t>(length);
  const bool sampled = needs_sample(counts) && sample(counts, wr);
  const int result = counts.post_send(qp, wr, bad_wr);
  if (result != 0) return finish_failed(counts, wr, *bad_wr, sampled, result);
  note_list(counts, length);
  return result;
}

// A post of one request that matches no recent shape, or of none.
[[gnu::noinline]] int post_new_shape(QpCounts& counts, ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  const bool due = needs_sample(counts);
  if (wr != nullptr) {
    count_list(counts, wr, nullptr, true, 1);
    const bool noted = is_atomic(wr->opcode) && counts.atomics.noted < kAtomicsNoted;
    if (noted && !due) note_atomic(counts, wr->wr.atomic.remote_addr);
    if (!noted) cache_shape(counts, *wr);
    --counts.until_sample;
  }
  const bool sampled = due && sample(counts, wr);
  const int result = counts.post_send(qp, wr, bad_wr);
  return result == 0 ? result : finish_failed(counts, wr, *bad_wr, sampled, result);
}

[[gnu::noinline]] int undo_single(QpCounts& counts, std::uint64_t& count, int result) {
  add(count, kMinusOne);
  add(counts.failed_posts);
  return result;
}

// The end of a post that matches the most frequent shape and has been counted. Not inlined, so that the caller needs no
// saved registers.
[[gnu::noinline]] int post_counted(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr, QpCounts& counts) {
  const int result = counts.post_send(qp, wr, bad_wr);
  if (result != 0) [[unlikely]]
    return undo_single(counts, *counts.recent[0].count, result);
  return result;
}

// True if a request that is posted alone matches `recent`.
inline bool is_recent(const QpCounts& counts, const RecentShape& recent, const ibv_send_wr& wr) {
  return shape_head(wr) == recent.head && shape_data(*wr.sg_list, counts.offset_mask) == recent.data;
}

// Posts a request that has been counted, and may sample it.
[[gnu::noinline]] int post_sampled(QpCounts& counts, std::uint64_t& count, ibv_qp* qp, ibv_send_wr* wr,
                                   ibv_send_wr** bad_wr) {
  const bool sampled = sample(counts, wr);
  const int result = counts.post_send(qp, wr, bad_wr);
  if (result == 0) return result;
  if (sampled) forget_sample(counts);
  return undo_single(counts, count, result);
}

// All posts except those of the most frequent recent shape.
[[gnu::noinline]] int post_other(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  if (wr != nullptr && wr->next != nullptr) return post_several(qp, wr, bad_wr);
  QpCounts& counts = counts_for_post(qp);
  auto& [first, second] = counts.recent;
  if (wr == nullptr || needs_sample(counts)) return post_new_shape(counts, qp, wr, bad_wr);
  const bool is_first = is_recent(counts, first, *wr);
  if (!is_first && !is_recent(counts, second, *wr)) return post_new_shape(counts, qp, wr, bad_wr);
  std::uint64_t& count = is_first ? *first.count : *second.count;
  const std::uint64_t so_far = count + 1;
  put(count, so_far);
  if (so_far > *first.count) std::swap(first, second);
  if (so_far % kSampleEvery == 0) return post_sampled(counts, count, qp, wr, bad_wr);
  const int result = counts.post_send(qp, wr, bad_wr);
  return result == 0 ? result : undo_single(counts, count, result);
}

void note_recvs(Recvs& recvs, const ibv_recv_wr* wr, const ibv_recv_wr* end, bool failed) {
  std::uint64_t length = 0, elements = 0;
  for (; wr != end && wr != nullptr; wr = wr->next) {
    ++length;
    elements += static_cast<std::uint32_t>(wr->num_sge);
  }
  if (failed) add(recvs.failed_posts);
  if (length == 0) return;
  add(recvs.posts);
  add(recvs.recvs, length);
  add(recvs.elements, elements);
  add_class(recvs.by_list, length);
}

}  // namespace

// Counts before posting, because another thread may poll the completion before the provider returns.
int counted_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  if (recent_qp.qp != qp || wr == nullptr) return post_other(qp, wr, bad_wr);
  if (wr->next != nullptr) return post_several(qp, wr, bad_wr);
  QpCounts& counts = *recent_qp.counts;
  const RecentShape& recent = counts.recent[0];
  if (!is_recent(counts, recent, *wr)) return post_other(qp, wr, bad_wr);
  const std::uint64_t so_far = *recent.count + 1;
  put(*recent.count, so_far);
  if (so_far % kSampleEvery == 0) return post_sampled(counts, *recent.count, qp, wr, bad_wr);
  return post_counted(qp, wr, bad_wr, counts);
}

int counted_post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  QpCounts& counts = qp_counts(qp);
  const int result = counts.post_recv(qp, wr, bad_wr);
  note_recvs(counts.recvs, wr, result == 0 ? nullptr : *bad_wr, result != 0);
  return result;
}

int counted_post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  RecvCounts& counts = recv_counts(srq);
  const int result = counts.post(srq, wr, bad_wr);
  note_recvs(counts.recvs, wr, result == 0 ? nullptr : *bad_wr, result != 0);
  return result;
}

int counted_req_notify_cq(ibv_cq* cq, int solicited_only) {
  PollCounts& counts = poll_counts(cq);
  add(counts.arms);
  return counts.arm(cq, solicited_only);
}

}  // namespace verbscope::driver
