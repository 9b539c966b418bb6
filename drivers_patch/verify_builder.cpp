#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "drivers_patch/builder_calls.hpp"
#include "drivers_patch/process.hpp"
#include "drivers_patch/verify.hpp"

namespace verbscope::driver {

// The batch being built on a QP, and the provider's calls of its builder. Between wr_start and wr_complete the
// provider's lock admits one thread to the queue, and so to this.
struct CheckedBuilder {
  static constexpr RecordKind kKind = RecordKind::checked_builder;
  static constexpr std::size_t kMaxRequests = 64;  // requests compared per batch
  RecordHead head;
  BuilderCalls* of = nullptr;
  CheckedQueue* queue = nullptr;  // null if the batch is not checked
  PendingPost post;
  std::uint32_t position = 0;
  bool open = false;  // the last request has no data yet
  Request last;
  std::size_t requests = 0;
  ExpectedWqe expected[kMaxRequests];
  ibv_qp_ex calls{};
};

namespace {

CheckedBuilder& builder_of(const ibv_qp_ex* qp) {
  return *static_cast<BuilderCalls*>(process.lookup.find(kRecordBits | key_of(qp) | kBuilderBit))->checked;
}

// Adds the last request, which is complete.
void finish_request(CheckedBuilder& builder) {
  if (!builder.open) return;
  builder.open = false;
  if (builder.requests < CheckedBuilder::kMaxRequests) {
    builder.expected[builder.requests] = expected_wqe(builder.queue->queue.family, builder.of->qp->facts, builder.last);
  }
  ++builder.requests;
}

void end_batch(CheckedBuilder& builder) {
  if (builder.queue != nullptr) end_post(*builder.queue);
  builder.queue = nullptr;
  builder.open = false;
  builder.requests = 0;
}

void verified_start(ibv_qp_ex* qp) {
  CheckedBuilder& builder = builder_of(qp);
  CheckedQueue* const queue = checked_queue(*static_cast<ibv_qp*>(const_cast<void*>(builder.of->qp->object)));
  builder.calls.wr_start(qp);
  end_batch(builder);
  builder.queue = queue;
  if (queue == nullptr) return;
  builder.post = begin_post(*builder.queue);
  builder.position = next_position_of(*builder.queue);
}

PostCheck compare_post(const CheckedBuilder& builder) {
  PostCheck post_check(*builder.queue, builder.position);
  const std::size_t compared = std::min(builder.requests, CheckedBuilder::kMaxRequests);
  for (const ExpectedWqe& expected : std::span(builder.expected).first(compared)) post_check.compare(expected);
  post_check.skip(builder.requests - compared);
  return post_check;
}

// The batch is written, but its doorbell is not rung. After wr_complete other threads may write.
int verified_complete(ibv_qp_ex* qp) {
  CheckedBuilder& builder = builder_of(qp);
  finish_request(builder);
  CheckedQueue* const queue = builder.queue;
  if (queue == nullptr) return builder.calls.wr_complete(qp);
  const std::size_t requests = builder.requests;
  const PendingPost post = builder.post;
  std::optional<PostCheck> post_check;
  if (post.alone) post_check.emplace(compare_post(builder));
  builder.queue = nullptr;
  const int result = builder.calls.wr_complete(qp);
  if (result == 0 && post_check) {
    const std::uint32_t next = next_position(queue->queue, post_check->position());
    if (is_only_post(*queue, post)) post_check->compare_end(next);
    post_check->count();
  } else if (result == 0) {
    count_skipped(*queue->checks, requests);
  }
  end_post(*queue);
  return result;
}

void verified_abort(ibv_qp_ex* qp) {
  CheckedBuilder& builder = builder_of(qp);
  end_batch(builder);
  builder.calls.wr_abort(qp);
}

void set_inline(CheckedBuilder& builder, std::size_t buffers, std::uint64_t length) {
  builder.last.flags |= IBV_SEND_INLINE;
  builder.last.elements = static_cast<std::uint32_t>(buffers);
  builder.last.length = length;
  finish_request(builder);
}

void verified_set_inline_data(ibv_qp_ex* qp, void* address, std::size_t length) {
  CheckedBuilder& builder = builder_of(qp);
  set_inline(builder, 1, length);
  builder.calls.wr_set_inline_data(qp, address, length);
}

void verified_set_inline_data_list(ibv_qp_ex* qp, std::size_t buffers, const ibv_data_buf* list) {
  CheckedBuilder& builder = builder_of(qp);
  std::uint64_t length = 0;
  for (const ibv_data_buf& buffer : std::span(list, buffers)) length += buffer.length;
  set_inline(builder, buffers, length);
  builder.calls.wr_set_inline_data_list(qp, buffers, list);
}

void verified_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  CheckedBuilder& builder = builder_of(qp);
  builder.last.elements = 1;
  builder.last.length = length;
  finish_request(builder);
  builder.calls.wr_set_sge(qp, lkey, address, length);
}

void verified_set_sge_list(ibv_qp_ex* qp, std::size_t elements, const ibv_sge* list) {
  CheckedBuilder& builder = builder_of(qp);
  builder.last.elements = static_cast<std::uint32_t>(elements);
  builder.last.length = 0;
  for (const ibv_sge& element : std::span(list, elements)) builder.last.length += element.length;
  builder.last.gather = {list, elements};
  finish_request(builder);
  builder.calls.wr_set_sge_list(qp, elements, list);
}

// Replaces a call that begins a request: `member` of the builder, with its other arguments.
template <auto member, ibv_wr_opcode opcode>
struct VerifiedBegins;
template <ibv_wr_opcode opcode, class... Arguments, void (*ibv_qp_ex::*member)(ibv_qp_ex*, Arguments...)>
struct VerifiedBegins<member, opcode> {
  static void call(ibv_qp_ex* qp, Arguments... arguments) {
    CheckedBuilder& builder = builder_of(qp);
    if (builder.queue != nullptr) {
      finish_request(builder);
      const unsigned flags = qp->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
      builder.last = {.opcode = opcode, .flags = flags};
      builder.open = true;
    }
    (builder.calls.*member)(qp, arguments...);
  }
};

}  // namespace

void verify_builder(ibv_qp_ex& extended, BuilderCalls& calls) {
  CheckedBuilder* const builder = process.arena.make<CheckedBuilder>();
  if (builder == nullptr) return;
  builder->of = &calls;
  std::memcpy(&builder->calls, &extended, kBuilderBytes);
  calls.checked = builder;
  Arena::publish(*builder);
  wrap_beginnings<VerifiedBegins>(extended);
  wrap_call(extended.wr_set_inline_data, &verified_set_inline_data);
  wrap_call(extended.wr_set_inline_data_list, &verified_set_inline_data_list);
  wrap_call(extended.wr_set_sge, &verified_set_sge);
  wrap_call(extended.wr_set_sge_list, &verified_set_sge_list);
  wrap_call(extended.wr_start, &verified_start);
  wrap_call(extended.wr_complete, &verified_complete);
  wrap_call(extended.wr_abort, &verified_abort);
}

}  // namespace verbscope::driver
