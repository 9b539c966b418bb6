#include "drivers_patch/data_path.hpp"

#include "drivers_patch/process.hpp"
#include "drivers_patch/sampling.hpp"
#include "drivers_patch/shapes.hpp"

namespace verbscope::driver {
namespace {

constexpr std::uint64_t kTakeBack = ~std::uint64_t{0};  // a weight of -1

bool alike(const ibv_send_wr& a, const ibv_send_wr& b, std::uint64_t offset_mask) {
  if (shape_head(a) != shape_head(b)) return false;
  if (a.num_sge != 1) return a.num_sge == 0;
  return shape_data(*a.sg_list, offset_mask) == shape_data(*b.sg_list, offset_mask);
}

// Counts the requests from `wr` to before `end`, runs of those that are alike at once. Yields how many there are.
std::uint64_t count_list(QpCounts& counts, const ibv_send_wr* wr, const ibv_send_wr* end, bool alone,
                         std::uint64_t weight) {
  std::uint64_t all = 0;
  while (wr != end && wr != nullptr) {
    const ibv_send_wr* const first = wr;
    std::uint64_t run = 0;
    do {
      ++run;
      wr = wr->next;
    } while (wr != end && wr != nullptr && alike(*wr, *first, counts.offset_mask));
    count_request(counts, *first, alone, run * weight);
    all += run;
  }
  return all;
}

void note_list(QpCounts& counts, std::uint64_t length) {
  if (length < 2) return;
  add(counts.lists);
  add_class(counts.by_list, length);
}

bool any_signaled(const QpCounts& counts, const ibv_send_wr* wr) {
  if (counts.qp->facts.signal_all) return wr != nullptr;
  while (wr != nullptr && (wr->send_flags & IBV_SEND_SIGNALED) == 0) wr = wr->next;
  return wr != nullptr;
}

// A single post that is like this one need not look for its count.
void remember(QpCounts& counts, const ibv_send_wr& wr) {
  if (wr.num_sge != 1) return;
  const Shape shape{shape_head(wr), shape_data(*wr.sg_list, counts.offset_mask)};
  std::uint64_t* const count = count_of(counts, {shape.head | kAlone, shape.data});
  if (count == nullptr) return;
  counts.last_head = shape.head;
  counts.last_data = shape.data;
  counts.last_count = count;
}

// The provider took what is before `bad`: it is a shorter list.
void recount(QpCounts& counts, const ibv_send_wr* wr, const ibv_send_wr* bad, bool alone) {
  count_list(counts, wr, nullptr, alone, kTakeBack);
  add(counts.failed_posts);
  const bool one = wr != nullptr && wr != bad && wr->next == bad;
  note_list(counts, count_list(counts, wr, bad, one, 1));
}

[[gnu::noinline]] int post_list(QpCounts& counts, ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  const bool alone = wr != nullptr && wr->next == nullptr;
  const auto length = count_list(counts, wr, nullptr, alone, 1);
  if (alone) {
    remember(counts, *wr);
  } else {
    counts.until_sample -= static_cast<std::int64_t>(length);
  }
  const bool sampled = counts.until_sample <= 0 && sample_post(counts, any_signaled(counts, wr), 0);
  const int result = counts.post_send(qp, wr, bad_wr);
  if (result == 0) {
    note_list(counts, length);
  } else {
    if (sampled) forget_sample(counts);
    recount(counts, wr, *bad_wr, alone);
  }
  return result;
}

[[gnu::noinline]] int single_failed(QpCounts& counts, int result) {
  add(*counts.last_count, kTakeBack);
  add(counts.failed_posts);
  return result;
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

// Counted before it is posted: another thread may have polled it when the provider returns.
int counted_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  QpCounts& counts = qp_counts(qp);
  if (wr != nullptr && wr->next == nullptr && shape_head(*wr) == counts.last_head &&
      shape_data(*wr->sg_list, counts.offset_mask) == counts.last_data && --counts.until_sample > 0) [[likely]] {
    add(*counts.last_count);
    const int result = counts.post_send(qp, wr, bad_wr);
    return result == 0 ? 0 : single_failed(counts, result);
  }
  return post_list(counts, qp, wr, bad_wr);
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
