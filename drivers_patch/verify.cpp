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
std::uint64_t taken_of(const ibv_send_wr* wr, const ibv_send_wr* bad) {
  std::uint64_t length = 0;
  for (; wr != bad; wr = wr->next) {
    if (wr == nullptr) return 0;
    ++length;
  }
  return length;
}

void look_at(CheckedQueue& queue, const PostTurn& turn, std::uint32_t position, const ibv_send_wr* wr,
             std::uint64_t requests) {
  if (is_alone(queue, turn)) {
    Look look(queue, position);
    for (std::uint64_t i = 0; i < requests; ++i, wr = wr->next) {
      look.compare(reckon(queue.queue.family, queue.qp->facts, posted_request(*wr)));
    }
    look.compare_end(next_position(queue.queue, look.position()));
    if (is_alone(queue, turn)) return look.count();
  }
  count_left_out(*queue.checks, requests);
}

int verified_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  const auto provider = wrapped(qp->context)->ops.post_send;
  CheckedQueue* const queue = checked_queue(*qp);
  if (queue == nullptr) return provider(qp, wr, bad_wr);
  const PostTurn turn = begin_post(*queue);
  const std::uint32_t position = next_of(*queue);
  const int result = provider(qp, wr, bad_wr);
  look_at(*queue, turn, position, wr, taken_of(wr, result == 0 ? nullptr : *bad_wr));
  end_post(*queue);
  return result;
}

QueueMemory memory_of(const WrappedContext& context) {
  if (!context.record->family_known) return QueueMemory::other_adapter;
  return context.direct.has(context.record->family) ? QueueMemory::there : QueueMemory::no_direct_verbs;
}

}  // namespace

ReckonedWqe reckon(NicFamily family, const QpFacts& qp, const Request& request) {
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

void Look::differs(std::size_t kind, std::uint64_t reckoned, std::uint64_t found) {
  Found& of_kind = found_[kind];
  if (of_kind.count++ > 0) return;
  of_kind.example = {.qp_num = queue_.qp->qp_num,
                     .position = position_,
                     .opcode = latest_.opcode,
                     .elements = latest_.elements,
                     .length = latest_.length,
                     .reckoned = reckoned,
                     .found = found};
}

void Look::compare(const ReckonedWqe& reckoned) {
  const std::optional<Transport> transport = transport_of_type(queue_.qp->facts.type);
  if (lost_ || !transport) return leave_out(1);
  latest_ = reckoned;
  Wqe wqe;
  const Refusal refusal = decode(queue_.queue, *transport, position_, wqe);
  if (reckoned.bytes == 0) {
    leave_out(1);
  } else if (++wqes_; refusal != Refusal::none) {
    differs(kPlainDifferences + static_cast<std::size_t>(refusal), 0, 0);
  } else {
    differs(Difference::opcode, reckoned.opcode, wqe.opcode);
    differs(Difference::size, reckoned.bytes, wqe.bytes);
    differs(Difference::signaled, reckoned.signaled ? 1 : 0, (wqe.flags & IBV_SEND_SIGNALED) != 0 ? 1 : 0);
    differs(Difference::fence, reckoned.fence ? 1 : 0, (wqe.flags & IBV_SEND_FENCE) != 0 ? 1 : 0);
    differs(Difference::solicited, reckoned.solicited ? 1 : 0, (wqe.flags & IBV_SEND_SOLICITED) != 0 ? 1 : 0);
    differs(Difference::inline_bytes, reckoned.inline_bytes, wqe.inline_bytes);
  }
  lost_ = wqe.blocks == 0;
  if (!lost_) position_ = position_behind(queue_.queue, position_, wqe.blocks);
}

void Look::compare_end(std::uint32_t next) {
  queue_.guess.store(next, std::memory_order_relaxed);
  if (!lost_ && left_out_ == 0) differs(Difference::position, position_, next);
}

void Look::count() const {
  ContextChecks& checks = *queue_.checks;
  add_shared(checks.wqes, wqes_);
  add_shared(checks.left_out, left_out_);
  for (std::size_t kind = 0; kind < kDifferences; ++kind) {
    const Found& found = found_[kind];
    if (found.count > 0) count_difference(checks.differences[kind], found.count, found.example);
  }
}

void count_left_out(ContextChecks& checks, std::uint64_t wqes) {
  add_shared(checks.left_out, wqes);
}

CheckedQueue* checked_queue(ibv_qp& qp) {
  QpRecord* const record = find_record<QpRecord>(&qp);
  if (record == nullptr) return nullptr;
  CheckedQueue* known = record->checked.load(std::memory_order_acquire);
  if (known == nullptr) {
    const ErrnoKept kept;
    const std::lock_guard guard(process.control);
    known = record->checked.load();
    const WrappedContext* const context = wrapped(qp.context);
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
  if (checks->memory != QueueMemory::there) return;
  context.checks = checks;
  context.post_send = &verified_post_send;
}

}  // namespace verbscope::driver
