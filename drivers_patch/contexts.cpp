#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "drivers_patch/data_path.hpp"
#include "drivers_patch/object_keys.hpp"
#include "drivers_patch/objects.hpp"
#include "drivers_patch/verified_posts.hpp"

namespace verbscope::driver {
namespace {

// mlx5 reads the number of doorbell registers from the environment (rdma-core 44, providers/mlx5/mlx5.c:
// get_total_uuars).
DoorbellRegisters registers_of_process() {
  DoorbellRegisters registers;
  const char* const total = std::getenv("MLX5_TOTAL_UUARS");
  const int asked = total == nullptr ? 0 : std::atoi(total);
  if (asked > static_cast<int>(DoorbellRegisters::kMinExclusive)) registers.total = static_cast<std::uint32_t>(asked);
  return registers;
}

// Makes the counts that objects without room share. False if there is no room even for those.
bool make_shared_counts(WrappedContext& wrapped) {
  QpRecord* const qp = process.arena.make<QpRecord>();
  wrapped.other_qps = process.arena.make<QpCounts>();
  wrapped.other_cqs = process.arena.make<PollCounts>();
  wrapped.other_srqs = process.arena.make<RecvCounts>();
  if (qp == nullptr || wrapped.other_qps == nullptr || wrapped.other_cqs == nullptr || wrapped.other_srqs == nullptr) {
    return false;
  }
  qp->number = process.qps++;
  qp->context = wrapped.record->number;
  qp->no_samples = true;
  wrapped.other_qps->post_send = wrapped.ops.post_send;
  wrapped.other_qps->post_recv = wrapped.ops.post_recv;
  wrapped.other_qps->takes_times = false;
  wrapped.other_qps->qp = qp;
  wrapped.other_qps->qp_record = qp->number;
  wrapped.other_cqs->poll = wrapped.ops.poll_cq;
  wrapped.other_cqs->arm = wrapped.ops.req_notify_cq;
  wrapped.other_cqs->number_tag = number_tag(wrapped.record->number);
  wrapped.other_cqs->unknown = wrapped.other_qps;
  wrapped.other_srqs->post = wrapped.ops.post_srq_recv;
  Arena::publish(*qp);
  Arena::publish(*wrapped.other_qps);
  Arena::publish(*wrapped.other_cqs);
  Arena::publish(*wrapped.other_srqs);
  return true;
}

template <class Function>
void replace(Function*& call, Function* counted) {
  if (call != nullptr) call = counted;
}

// Restores the provider's call, unless the program has installed its own.
template <class Function>
void restore(Function*& call, Function* counted, Function* provider) {
  if (call == counted) call = provider;
}

// Removes an object of a closed context from the lookup, unless it was removed before.
template <class Record>
void forget(const RecordHead& head, std::uint32_t context) {
  const auto& record = reinterpret_cast<const Record&>(head);
  if (record.context != context || find_record<Record>(record.object) != &record) return;
  erase_keys(record);
}

}  // namespace

int start_counting(const char* path, std::uint64_t capacity, const WireFacts& wire) {
  const ErrnoKept kept;
  const std::lock_guard guard(process.control);
  if (!process.lookup.open()) return ENOMEM;
  return process.arena.open(path, capacity, wire);
}

void attach_context(ibv_context& context, const ContextFacts& facts) {
  if (!counting()) return;
  const ErrnoKept kept;
  const DirectVerbs direct = process.find_direct == nullptr ? DirectVerbs{} : process.find_direct();
  const std::lock_guard guard(process.control);
  if (wrapped(&context) != nullptr) return;
  ContextRecord* const record = process.arena.make<ContextRecord>();
  auto* const made = record == nullptr ? nullptr : new (std::nothrow) WrappedContext;
  if (made == nullptr) return;
  record->number = process.contexts++;
  record->family = facts.family.value_or(record->family);
  record->family_known = facts.family.has_value();
  if (context.device != nullptr) {
    static_assert(sizeof record->device == sizeof context.device->name);
    std::memcpy(record->device, context.device->name, sizeof record->device);
  }
  made->record = record;
  made->ops = context.ops;
  made->post_send = context.ops.post_send;
  made->sample_times = facts.sample_times;
  made->registers = facts.registers.value_or(registers_of_process());
  made->direct = direct;
  if (!make_shared_counts(*made) || !process.lookup.insert(record_key(&context), made)) {
    delete made;
    return;
  }
  Arena::publish(*record);
  if (process.find_direct != nullptr) verify_context(*made);
  replace(context.ops.post_send, &counted_post_send);
  replace(context.ops.post_recv, &counted_post_recv);
  replace(context.ops.post_srq_recv, &counted_post_srq_recv);
  replace(context.ops.poll_cq, &counted_poll_cq);
  replace(context.ops.req_notify_cq, &counted_req_notify_cq);
}

void detach_context(ibv_context& context) {
  if (!counting()) return;
  const ErrnoKept kept;
  const std::lock_guard guard(process.control);
  WrappedContext* const known = wrapped(&context);
  if (known == nullptr) return;
  const std::uint32_t number = known->record->number;
  const auto forget_any = [number](const RecordHead& head) {
    if (head.kind == RecordKind::queue_pair) forget<QpRecord>(head, number);
    if (head.kind == RecordKind::completion_queue) forget<CqRecord>(head, number);
    if (head.kind == RecordKind::shared_queue) forget<SrqRecord>(head, number);
  };
  each_record(process.arena.header(), forget_any, &known->record->head);  // records of its objects follow it
  process.lookup.erase(record_key(&context));
  known->other_qps->recent[0] = known->other_qps->recent[1] = {};
  restore(context.ops.post_send, &counted_post_send, known->ops.post_send);
  restore(context.ops.post_recv, &counted_post_recv, known->ops.post_recv);
  restore(context.ops.post_srq_recv, &counted_post_srq_recv, known->ops.post_srq_recv);
  restore(context.ops.poll_cq, &counted_poll_cq, known->ops.poll_cq);
  restore(context.ops.req_notify_cq, &counted_req_notify_cq, known->ops.req_notify_cq);
  delete known;
}

void count_registration(const ibv_context& context, const void* address, std::size_t length) {
  constexpr std::uint64_t kPage = 4096;
  if (!counting()) return;
  const std::lock_guard guard(process.control);
  const WrappedContext* const known = wrapped(&context);
  if (known == nullptr) return;
  const std::uint64_t begin = key_of(address);
  const std::uint64_t pages = length == 0 ? 0 : (begin + length - 1) / kPage - begin / kPage + 1;
  ++known->record->registrations;
  known->record->registered_bytes += length;
  known->record->registered_pages += pages;
  if (!known->in_use.load(std::memory_order_relaxed)) return;
  ++known->record->late_registrations;
  known->record->late_pages += pages;
}

void count_deregistration(const ibv_context& context) {
  if (!counting()) return;
  const std::lock_guard guard(process.control);
  if (const WrappedContext* const known = wrapped(&context)) ++known->record->deregistrations;
}

void count_address_handle(const ibv_context& context) {
  if (!counting()) return;
  const std::lock_guard guard(process.control);
  if (const WrappedContext* const known = wrapped(&context)) ++known->record->address_handles;
}

}  // namespace verbscope::driver
