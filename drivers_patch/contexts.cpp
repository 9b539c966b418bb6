#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "drivers_patch/data_path.hpp"
#include "drivers_patch/objects.hpp"
#include "drivers_patch/process.hpp"
#include "drivers_patch/verify.hpp"

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
bool make_shared_counts(WrappedContext& context) {
  QpRecord* const qp = process.arena.make<QpRecord>();
  context.other_qps = process.arena.make<QpCounts>();
  context.other_cqs = process.arena.make<PollCounts>();
  context.other_srqs = process.arena.make<RecvCounts>();
  if (qp == nullptr || context.other_qps == nullptr || context.other_cqs == nullptr || context.other_srqs == nullptr) {
    return false;
  }
  qp->number = process.qps++;
  qp->context = context.record->number;
  qp->no_samples = true;
  context.other_qps->post_send = context.ops.post_send;
  context.other_qps->post_recv = context.ops.post_recv;
  context.other_qps->takes_times = false;
  context.other_qps->qp = qp;
  context.other_qps->qp_record = qp->number;
  context.other_cqs->poll = context.ops.poll_cq;
  context.other_cqs->arm = context.ops.req_notify_cq;
  context.other_cqs->number_tag = number_tag(context.record->number);
  context.other_cqs->unknown = context.other_qps;
  context.other_srqs->post = context.ops.post_srq_recv;
  Arena::publish(*qp);
  Arena::publish(*context.other_qps);
  Arena::publish(*context.other_cqs);
  Arena::publish(*context.other_srqs);
  return true;
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

std::optional<NicFamily> family_of_device(const ibv_device* device) {
  if (device == nullptr) return std::nullopt;
  char path[sizeof device->ibdev_path + 32];
  char target[PATH_MAX];
  // An emulated device (rxe, siw) on an adapter's Ethernet port has the same bus device. Only the adapter's own has
  // hca_type.
  snprintf(path, sizeof path, "%s/hca_type", device->ibdev_path);
  if (access(path, F_OK) != 0) return std::nullopt;
  snprintf(path, sizeof path, "%s/device/driver", device->ibdev_path);
  const ssize_t length = readlink(path, target, sizeof target - 1);
  if (length <= 0) return std::nullopt;
  const std::string_view whole(target, static_cast<std::size_t>(length));
  const std::string_view driver = whole.substr(whole.find_last_of('/') + 1);
  for (const FamilyFacts& family : kFamilies) {
    if (family.driver == driver) return family.value;
  }
  return std::nullopt;
}

int start_counting(const char* path, std::uint64_t capacity, const WireFacts& wire) {
  const ErrnoGuard errno_guard;
  const std::lock_guard guard(process.control);
  if (!process.lookup.open()) return ENOMEM;
  return process.arena.open(path, capacity, wire);
}

void attach_context(ibv_context& context, const ContextFacts& facts) {
  if (!counting()) return;
  const ErrnoGuard errno_guard;
  const DirectVerbs direct = process.find_direct == nullptr ? DirectVerbs{} : process.find_direct();
  const std::lock_guard guard(process.control);
  if (find_context(&context) != nullptr) return;
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
  wrap_call(context.ops.post_send, &counted_post_send);
  wrap_call(context.ops.post_recv, &counted_post_recv);
  wrap_call(context.ops.post_srq_recv, &counted_post_srq_recv);
  wrap_call(context.ops.poll_cq, &counted_poll_cq);
  wrap_call(context.ops.req_notify_cq, &counted_req_notify_cq);
}

void detach_context(ibv_context& context) {
  if (!counting()) return;
  const ErrnoGuard errno_guard;
  const std::lock_guard guard(process.control);
  WrappedContext* const known = find_context(&context);
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
  const WrappedContext* const known = find_context(&context);
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
  if (const WrappedContext* const known = find_context(&context)) ++known->record->deregistrations;
}

void count_address_handle(const ibv_context& context) {
  if (!counting()) return;
  const std::lock_guard guard(process.control);
  if (const WrappedContext* const known = find_context(&context)) ++known->record->address_handles;
}

}  // namespace verbscope::driver
