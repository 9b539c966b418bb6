#include <algorithm>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>

#include "drivers_patch/builder_calls.hpp"
#include "drivers_patch/data_path.hpp"
#include "drivers_patch/process.hpp"
#include "drivers_patch/request_counts.hpp"

namespace verbscope::driver {
namespace {

// The batch that this thread is building. Most programs build only one at a time.
struct Building {
  const ibv_qp_ex* qp;
  BuilderBatch* batch;
};
constinit thread_local Building building __attribute__((tls_model("initial-exec"))) = {nullptr, nullptr};
// The QP of this thread's last batch.
constinit thread_local const ibv_qp_ex* recently_built __attribute__((tls_model("initial-exec"))) = nullptr;

std::uint64_t builder_key(const ibv_qp_ex* qp) {
  return key_of(qp) | kBuilderBit;
}

const BuilderCalls& calls_of(const ibv_qp_ex* qp) {
  return *static_cast<BuilderCalls*>(process.lookup.find(kRecordBits | builder_key(qp)));
}

// Null if there is no room: the batch is then only counted as an object without room.
[[gnu::noinline]] BuilderBatch* make_batch(ibv_qp_ex* qp) {
  const ErrnoGuard errno_guard;
  const BuilderCalls& calls = calls_of(qp);
  QpCounts& counts = qp_counts(static_cast<ibv_qp*>(const_cast<void*>(calls.qp->object)));
  BuilderBatch* const batch = counts.qp == calls.qp ? process.arena.make<BuilderBatch>() : nullptr;
  if (batch == nullptr) return nullptr;
  batch->calls = &calls;
  batch->counts = &counts;
  Arena::publish(*batch);
  if (process.lookup.insert(thread_bits | builder_key(qp), batch)) return batch;
  process.arena.header().without_room.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

BuilderBatch* find_batch(ibv_qp_ex* qp) {
  void* const found = process.lookup.find(thread_bits | builder_key(qp));
  return found != nullptr && thread_bits != 0 ? static_cast<BuilderBatch*>(found) : make_batch(qp);
}

// Valid between wr_start and wr_complete. Null: the batch is not counted.
inline BuilderBatch* batch_of(const ibv_qp_ex* qp) {
  return building.qp == qp ? building.batch : nullptr;
}

const ibv_qp_ex& provider_of(const BuilderBatch* batch, const ibv_qp_ex* qp) {
  return batch != nullptr ? batch->calls->calls : calls_of(qp).calls;
}

const WireFacts& wire() {
  return process.arena.header().wire;
}

[[gnu::noinline]] void add_to_shapes(BuilderBatch& batch, const Shape& shape) {
  for (std::size_t i = 0; i < batch.used; ++i) {
    ShapeSlot& slot = batch.shapes[i];
    if (slot.head != shape.head || slot.data != shape.data) continue;
    ++slot.count;
    batch.recent = &slot;
    return;
  }
  if (batch.used < BuilderBatch::kShapes) {
    batch.recent = &batch.shapes[batch.used++];
    *batch.recent = {shape.head, shape.data, 1};
    return;
  }
  batch.spills = true;
  add_request(wire(), batch.counts->qp->facts, request_of(shape), 1, batch.spilled);
}

// Adds the last request, which is complete. Most requests are like the one before.
[[gnu::noinline]] void finish_request(BuilderBatch& batch) {
  batch.open = false;
  ++batch.requests;
  if (batch.recent != nullptr && batch.recent->head == batch.last.head && batch.recent->data == batch.last.data) {
    ++batch.recent->count;
  } else {
    add_to_shapes(batch, {batch.last.head, batch.last.data});
  }
}

inline void begin_request(BuilderBatch& batch, const ibv_qp_ex& qp, ibv_wr_opcode opcode) {
  const std::uint64_t flags = qp.wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
  batch.last.head = std::uint64_t{opcode} << 32 | flags << kFlagsAt;
  batch.last.data = 0;
  batch.open = true;
}

void set_inline(const ibv_qp_ex* qp, std::uint64_t elements, std::uint64_t length) {
  BuilderBatch* const batch = batch_of(qp);
  if (batch == nullptr) return;
  batch->last.head |= elements | std::uint64_t{IBV_SEND_INLINE} << kFlagsAt;
  batch->last.data = length << 32;
}

void set_gather(BuilderBatch& batch, std::span<const ibv_sge> elements) {
  Request request = request_of({batch.last.head, 0});
  request.elements = static_cast<std::uint32_t>(elements.size());
  for (const ibv_sge& element : elements) request.length += element.length;
  request.gather = elements;
  const QpFacts& facts = batch.counts->qp->facts;
  add_request(wire(), facts, request, 1, batch.spilled);
  if (batch.requests == 0) {
    request.alone = true;
    add_request(wire(), facts, request, 1, batch.spilled_alone);
  }
  batch.spills = true;
  batch.open = false;
  ++batch.requests;
}

std::uint64_t signaled_of(const BuilderBatch& batch) {
  std::uint64_t signaled = batch.spilled.signaled;
  for (std::size_t i = 0; i < batch.used; ++i) {
    const bool asks = (request_of({batch.shapes[i].head, 0}).flags & IBV_SEND_SIGNALED) != 0;
    if (asks || batch.counts->qp->facts.signal_all) signaled += batch.shapes[i].count;
  }
  return signaled;
}

bool reads(const BuilderBatch& batch) {
  return std::ranges::any_of(std::span(batch.shapes, batch.used), [](const ShapeSlot& slot) {
    const ibv_wr_opcode opcode = request_of({slot.head, 0}).opcode;
    return opcode == IBV_WR_RDMA_READ || is_atomic(opcode);
  });
}

void clear(BuilderBatch& batch) {
  batch.requests = 0;
  batch.used = 0;
  batch.recent = nullptr;
  batch.open = false;
  if (!batch.spills) return;
  batch.spills = false;
  batch.spilled = {};
  batch.spilled_alone = {};
}

// Adds a batch that was posted completely.
void count_batch(BuilderBatch& batch) {
  QpCounts& counts = *batch.counts;
  const bool alone = batch.requests == 1;
  for (std::size_t i = 0; i < batch.used; ++i) {
    const ShapeSlot& slot = batch.shapes[i];
    count_shape(counts, {slot.head | (alone ? kAlone : 0), slot.data}, slot.count);
  }
  if (batch.spills) {
    SendTotals totals = counts.spilled;
    add_scaled(totals, alone ? batch.spilled_alone : batch.spilled, 1);
    put_all(counts.spilled, totals);
  }
  if (batch.requests < 2) return;
  add(counts.lists);
  add_class(counts.by_list, batch.requests);
}

void counted_start(ibv_qp_ex* qp) {
  BuilderBatch* const batch = find_batch(qp);
  building = {qp, batch};
  if (batch == nullptr) return calls_of(qp).calls.wr_start(qp);
  if (std::exchange(recently_built, qp) != qp) add(batch->counts->turns);
  clear(*batch);
  batch->calls->calls.wr_start(qp);
}

int counted_complete(ibv_qp_ex* qp) {
  BuilderBatch* const batch = batch_of(qp);
  building = {nullptr, nullptr};
  if (batch == nullptr) return calls_of(qp).calls.wr_complete(qp);
  if (batch->open) finish_request(*batch);
  recent_empty.cq = nullptr;
  QpCounts& counts = *batch->counts;
  counts.until_sample -= static_cast<std::int64_t>(batch->requests);
  bool sampled = false;
  if (counts.until_sample <= 0 || counts.sample_due) {
    const std::uint64_t signaled = signaled_of(*batch);
    if (reads(*batch)) sample_reads(counts, batch->requests, signaled);
    sampled = sample_post(counts, signaled > 0, signaled);
  }
  const int result = batch->calls->calls.wr_complete(qp);
  if (result == 0) {
    count_batch(*batch);
  } else {
    if (sampled) forget_sample(counts);
    add(counts.failed_posts);
  }
  clear(*batch);
  return result;
}

void counted_abort(ibv_qp_ex* qp) {
  BuilderBatch* const batch = batch_of(qp);
  building = {nullptr, nullptr};
  if (batch != nullptr) clear(*batch);
  provider_of(batch, qp).wr_abort(qp);
}

void counted_set_inline_data(ibv_qp_ex* qp, void* address, std::size_t length) {
  set_inline(qp, 1, length);
  provider_of(batch_of(qp), qp).wr_set_inline_data(qp, address, length);
}

void counted_set_inline_data_list(ibv_qp_ex* qp, std::size_t buffers, const ibv_data_buf* list) {
  std::uint64_t length = 0;
  for (const ibv_data_buf& buffer : std::span(list, buffers)) length += buffer.length;
  set_inline(qp, buffers, length);
  provider_of(batch_of(qp), qp).wr_set_inline_data_list(qp, buffers, list);
}

[[gnu::noinline]] void uncounted_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address,
                                         std::uint32_t length) {
  calls_of(qp).calls.wr_set_sge(qp, lkey, address, length);
}

void counted_set_sge(ibv_qp_ex* qp, std::uint32_t lkey, std::uint64_t address, std::uint32_t length) {
  BuilderBatch* const batch = batch_of(qp);
  if (batch == nullptr) return uncounted_set_sge(qp, lkey, address, length);
  batch->last.head |= 1;
  batch->last.data = std::uint64_t{length} << 32 | (address & batch->counts->offset_mask);
  batch->calls->calls.wr_set_sge(qp, lkey, address, length);
}

void counted_set_sge_list(ibv_qp_ex* qp, std::size_t elements, const ibv_sge* list) {
  BuilderBatch* const batch = batch_of(qp);
  if (batch != nullptr && elements == 1) {
    batch->last.head |= 1;
    batch->last.data = shape_data(*list, batch->counts->offset_mask);
  } else if (batch != nullptr && elements > 1) {
    set_gather(*batch, {list, elements});
  }
  provider_of(batch, qp).wr_set_sge_list(qp, elements, list);
}

// Replaces a call that begins a request: `member` of the builder, with its other arguments.
template <auto member, ibv_wr_opcode opcode>
struct Begins;
template <ibv_wr_opcode opcode, class... Arguments, void (*ibv_qp_ex::*member)(ibv_qp_ex*, Arguments...)>
struct Begins<member, opcode> {
  static void call(ibv_qp_ex* qp, Arguments... arguments) {
    BuilderBatch* const batch = batch_of(qp);
    if (batch == nullptr) return uncounted(qp, arguments...);
    if (batch->open) finish_request(*batch);
    begin_request(*batch, *qp, opcode);
    if constexpr (is_atomic(opcode)) {
      note_atomic(*batch->counts, std::get<1>(std::tie(arguments...)));  // the address follows the key
    }
    (batch->calls->calls.*member)(qp, arguments...);
  }
  [[gnu::noinline]] static void uncounted(ibv_qp_ex* qp, Arguments... arguments) {
    (calls_of(qp).calls.*member)(qp, arguments...);
  }
};

}  // namespace

void wrap_builder(ibv_qp_ex& qp, BuilderCalls& calls) {
  std::memcpy(&calls.calls, &qp, kBuilderBytes);
  wrap_beginnings<Begins>(qp);
  wrap_call(qp.wr_set_inline_data, &counted_set_inline_data);
  wrap_call(qp.wr_set_inline_data_list, &counted_set_inline_data_list);
  wrap_call(qp.wr_set_sge, &counted_set_sge);
  wrap_call(qp.wr_set_sge_list, &counted_set_sge_list);
  wrap_call(qp.wr_start, &counted_start);
  wrap_call(qp.wr_complete, &counted_complete);
  wrap_call(qp.wr_abort, &counted_abort);
}

}  // namespace verbscope::driver
