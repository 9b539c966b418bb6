#include "drivers_patch/verify.hpp"

#include <mutex>
#include <optional>

#include "drivers_patch/process.hpp"
#include "drivers_patch/queue_memory/decode.hpp"
#include "drivers_patch/request_counts.hpp"

namespace verbscope::driver {
namespace {

void add_shared(std::uint64_t& count, std::uint64_t n) {
  __atomic_fetch_add(&count, n, __ATOMIC_RELAXED);
}

// The first thread to find a difference stores its example.
void count_difference(DifferenceSlot& slot, std::uint64_t count, const DifferenceExample& example) {
  add_shared(slot.count, count);
  if (__atomic_exchange_n(&slot.claimed, std::uint64_t{1}, __ATOMIC_RELAXED) != 0) return;
  slot.example = example;
  __atomic_store_n(&slot.filled, std::uint64_t{1}, __ATOMIC_RELEASE);
}

// The caller holds process.control.
CheckedQueue* make_checked_queue(ibv_qp& qp, QpRecord& record, const WrappedContext& context) {
  auto* const made = process.arena.make<CheckedQueue>();
  if (made == nullptr) return nullptr;
  ContextChecks& checks = *context.checks;
  made->qp = &record;
  made->checks = &checks;
  const int error = find_send_queue(context.direct, context.record->family, qp, made->queue);
  if (error != 0) {
    if (checks.without_memory == 0) put(checks.first_error, static_cast<std::uint64_t>(error));
    add(checks.without_memory);
  }
  Arena::publish(*made);
  record.checked.store(made, std::memory_order_release);
  return made;
}

// The number of requests that the provider accepted: those before `bad`, or all if it is null. 0 if `bad` is not in the
// list.
std::uint64_t accepted_requests(const ibv_send_wr* wr, const ibv_send_wr* bad) {
  std::uint64_t length = 0;
  for (; wr != bad; wr = wr->next) {
    if (wr == nullptr) return 0;
    ++length;
  }
  return length;
}

void compare_post(CheckedQueue& queue, const PendingPost& post, std::uint32_t position, const ibv_send_wr* wr,
                  std::uint64_t requests) {
  if (is_only_post(queue, post)) {
    PostCheck post_check(queue, position);
    for (std::uint64_t i = 0; i < requests; ++i, wr = wr->next) {
      post_check.compare(expected_wqe(queue.queue.family, queue.qp->facts, posted_request(*wr)));
    }
    post_check.compare_end(next_position(queue.queue, post_check.position()));
    if (is_only_post(queue, post)) return post_check.count();
  }
  count_skipped(*queue.checks, requests);
}

int verified_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  const auto provider = find_context(qp->context)->ops.post_send;
  CheckedQueue* const queue = checked_queue(*qp);
  if (queue == nullptr) return provider(qp, wr, bad_wr);
  const PendingPost post = begin_post(*queue);
  const std::uint32_t position = next_position_of(*queue);
  const int result = provider(qp, wr, bad_wr);
  compare_post(*queue, post, position, wr, accepted_requests(wr, result == 0 ? nullptr : *bad_wr));
  end_post(*queue);
  return result;
}

QueueMemory memory_of(const WrappedContext& context) {
  if (!context.record->family_known) return QueueMemory::other_adapter;
  return context.direct.has(context.record->family) ? QueueMemory::readable : QueueMemory::no_direct_verbs;
}

}  // namespace

ExpectedWqe expected_wqe(NicFamily family, const QpFacts& qp, const Request& request) {
  SendTotals totals;
  add_request(usual_facts(family, false), qp, request, 1, totals);
  return {.opcode = request.opcode,
          .signaled = totals.signaled > 0,
          .fence = totals.fenced > 0,
          .solicited = (request.flags & IBV_SEND_SOLICITED) != 0,
          .elements = request.elements,
          .length = request.length,
          .bytes = totals.wqe_bytes,
          .inline_bytes = totals.inline_bytes};
}

void PostCheck::differs(std::size_t kind, std::uint64_t expected, std::uint64_t found) {
  Found& of_kind = found_[kind];
  if (of_kind.count++ > 0) return;
  of_kind.example = {.qp_num = queue_.qp->qp_num,
                     .position = position_,
                     .opcode = latest_.opcode,
                     .elements = latest_.elements,
                     .length = latest_.length,
                     .expected = expected,
                     .found = found};
}

void PostCheck::compare(const ExpectedWqe& expected) {
  const std::optional<Transport> transport = transport_of_type(queue_.qp->facts.type);
  if (position_unknown_ || !transport) return skip(1);
  latest_ = expected;
  Wqe wqe;
  const Refusal refusal = decode(queue_.queue, *transport, position_, wqe);
  if (expected.bytes == 0) {
    skip(1);
  } else if (++wqes_; refusal != Refusal::none) {
    differs(kPlainDifferences + static_cast<std::size_t>(refusal), 0, 0);
  } else {
    differs(Difference::opcode, expected.opcode, wqe.opcode);
    differs(Difference::size, expected.bytes, wqe.bytes);
    differs(Difference::signaled, expected.signaled ? 1 : 0, (wqe.flags & IBV_SEND_SIGNALED) != 0 ? 1 : 0);
    differs(Difference::fence, expected.fence ? 1 : 0, (wqe.flags & IBV_SEND_FENCE) != 0 ? 1 : 0);
    differs(Difference::solicited, expected.solicited ? 1 : 0, (wqe.flags & IBV_SEND_SOLICITED) != 0 ? 1 : 0);
    differs(Difference::inline_bytes, expected.inline_bytes, wqe.inline_bytes);
  }
  position_unknown_ = wqe.blocks == 0;
  if (!position_unknown_) position_ = position_behind(queue_.queue, position_, wqe.blocks);
}

void PostCheck::compare_end(std::uint32_t next) {
  queue_.guess.store(next, std::memory_order_relaxed);
  if (!position_unknown_ && left_out_ == 0) differs(Difference::position, position_, next);
}

void PostCheck::count() const {
  ContextChecks& checks = *queue_.checks;
  add_shared(checks.wqes, wqes_);
  add_shared(checks.left_out, left_out_);
  for (std::size_t kind = 0; kind < kDifferences; ++kind) {
    const Found& found = found_[kind];
    if (found.count > 0) count_difference(checks.differences[kind], found.count, found.example);
  }
}

void count_skipped(ContextChecks& checks, std::uint64_t wqes) {
  add_shared(checks.left_out, wqes);
}

CheckedQueue* checked_queue(ibv_qp& qp) {
  QpRecord* const record = find_record<QpRecord>(&qp);
  if (record == nullptr) return nullptr;
  CheckedQueue* known = record->checked.load(std::memory_order_acquire);
  if (known == nullptr) {
    const ErrnoGuard errno_guard;
    const std::lock_guard guard(process.control);
    known = record->checked.load();
    const WrappedContext* const context = find_context(qp.context);
    if (known == nullptr && context != nullptr) known = make_checked_queue(qp, *record, *context);
  }
  return known != nullptr && known->queue.memory != nullptr ? known : nullptr;
}

void verify_context(WrappedContext& context) {
  ContextChecks* const checks = process.arena.make<ContextChecks>();
  if (checks == nullptr) return;
  checks->context = context.record->number;
  checks->memory = memory_of(context);
  Arena::publish(*checks);
  if (checks->memory != QueueMemory::readable) return;
  context.checks = checks;
  context.post_send = &verified_post_send;
}

}  // namespace verbscope::driver
