#include "drivers_patch/verified_posts.hpp"

#include "drivers_patch/checks.hpp"
#include "drivers_patch/shapes.hpp"

namespace verbscope::driver {
namespace {

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
