#include "drivers_patch/process.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "drivers_patch/objects.hpp"

namespace verbscope::driver {
namespace {

std::uint64_t number_key(const QpRecord& qp) {
  return number_tag(qp.context) | (qp.qp_num & 0xffffff);
}

std::uint64_t used_at_fork = 0;  // bytes of records that the child copies

// The parent may have destroyed a QP before the child copied its record, but in the child the QP still exists. The
// lookup is not in the file and has the state at the fork.
void restore(RecordHead& head) {
  const RecordKind kind = head.kind;
  if (kind == RecordKind::queue_pair) {
    auto& qp = reinterpret_cast<QpRecord&>(head);
    if (qp.object != nullptr) qp.alive = find_record<QpRecord>(qp.object) == &qp;
  } else if (kind == RecordKind::qp_counts) {
    auto& counts = reinterpret_cast<QpCounts&>(head);
    const void* const object = counts.qp->object;
    const std::uint64_t thread = std::uint64_t{counts.thread} << 48;
    const bool found = object != nullptr && process.lookup.find(thread | key_of(object)) == &counts;
    counts.object = found ? object : nullptr;
  } else if (kind == RecordKind::thread) {
    auto& thread = reinterpret_cast<ThreadRecord&>(head);
    if (thread.number == thread_bits >> 48) thread.tid = gettid();
  }
}

}  // namespace

void erase_thread_keys(std::uint64_t key) {
  const std::uint32_t threads = std::min(process.threads.load(), kMaxThreads);
  for (std::uint64_t thread = 1; thread <= threads; ++thread) process.lookup.erase(thread << 48 | key);
}

bool insert_keys(QpRecord& qp) {
  if (!process.lookup.insert(record_key(qp.object), &qp)) return false;
  if (!process.lookup.insert(kRecordBits | number_key(qp), &qp)) return false;
  return qp.builder_calls == nullptr || process.lookup.insert(record_key(qp.extended) | kBuilderBit, qp.builder_calls);
}

void erase_keys(const QpRecord& qp) {
  process.lookup.erase(record_key(qp.object));
  process.lookup.erase(kRecordBits | number_key(qp));
  if (qp.builder_calls != nullptr) process.lookup.erase(record_key(qp.extended) | kBuilderBit);
  for (QpCounts* counts = qp.counts.load(); counts != nullptr; counts = counts->next) {
    const std::uint64_t thread = std::uint64_t{counts->thread} << 48;
    counts->recent[0] = counts->recent[1] = {};
    counts->object = nullptr;
    process.lookup.erase(thread | key_of(qp.object));
    process.lookup.erase(thread | number_key(qp));
    if (qp.builder_calls != nullptr) process.lookup.erase(thread | key_of(qp.extended) | kBuilderBit);
  }
}

constinit Process process;
constinit thread_local std::uint64_t thread_bits = 0;
constinit thread_local RecentQp recent_qp = {nullptr, nullptr};
constinit thread_local RecentEmpty recent_empty = {nullptr, 0, false};

ErrnoGuard::ErrnoGuard() : value_(errno) {}
ErrnoGuard::~ErrnoGuard() {
  errno = value_;
}

bool register_thread() {
  if (thread_bits != 0) return true;
  const std::uint32_t number = process.threads.fetch_add(1) + 1;
  if (number > kMaxThreads) {
    process.threads.fetch_sub(1);
    return false;
  }
  ThreadRecord* const thread = process.arena.make<ThreadRecord>();
  if (thread == nullptr) return false;
  thread->number = number;
  thread->tid = gettid();
  Arena::publish(*thread);
  thread_bits = std::uint64_t{number} << 48;
  return true;
}

std::uint32_t add_thread() {
  const std::uint64_t own = std::exchange(thread_bits, 0);
  register_thread();
  return static_cast<std::uint32_t>(std::exchange(thread_bits, own) >> 48);
}

void set_thread(std::uint32_t number) {
  const std::uint64_t bits = std::uint64_t{number} << 48;
  if (thread_bits == bits) return;
  thread_bits = bits;
  recent_qp = {nullptr, nullptr};
  recent_empty = {nullptr, 0, false};
}

namespace {

std::uint32_t thread_number() {
  return static_cast<std::uint32_t>(thread_bits >> 48);
}

// Counts an object without room, which uses the shared counts.
template <class Counts>
Counts& shared_counts(Counts& other) {
  process.arena.header().without_room.fetch_add(1, std::memory_order_relaxed);
  return other;
}

// Publishes counts under a key of this thread. False if there is no room for the key.
template <class Counts>
bool publish_counts(Counts& counts, std::uint64_t key) {
  Arena::publish(counts);
  return process.lookup.insert(thread_bits | key, &counts);
}

void link(QpRecord& qp, QpCounts& counts) {
  counts.next = qp.counts.load(std::memory_order_relaxed);
  while (!qp.counts.compare_exchange_weak(counts.next, &counts, std::memory_order_release)) {
  }
}

QpCounts* make_counts(QpRecord& qp, WrappedContext& context) {
  QpCounts* const counts = process.arena.make<QpCounts>();
  if (counts == nullptr) return nullptr;
  context.in_use.store(true, std::memory_order_relaxed);
  counts->post_send = context.post_send;
  counts->post_recv = context.ops.post_recv;
  counts->offset_mask = std::max(process.arena.header().wire.pcie.rcb.value, kCacheLine.value) - 1;
  counts->qp = &qp;
  counts->qp_record = qp.number;
  counts->thread = thread_number();
  counts->takes_times = context.sample_times;
  Arena::publish(*counts);
  link(qp, *counts);
  return counts;
}

// This thread's counts for a QP, which a post or a completion may have made before. Null if there is no room.
QpCounts* counts_of_thread(QpRecord& qp, WrappedContext& context) {
  for (QpCounts* counts = qp.counts.load(std::memory_order_acquire); counts != nullptr; counts = counts->next) {
    if (counts->thread == thread_number()) return counts;
  }
  return make_counts(qp, context);
}

}  // namespace

QpCounts& make_qp_counts(ibv_qp* object) {
  const ErrnoGuard errno_guard;
  WrappedContext& context = *find_context(object->context);
  if (!register_thread()) return shared_counts(*context.other_qps);
  if (void* const found = process.lookup.find(thread_bits | key_of(object))) return *static_cast<QpCounts*>(found);
  QpRecord* qp = find_record<QpRecord>(object);
  if (qp == nullptr) qp = adopt_qp(object, context);
  if (qp == nullptr) return shared_counts(*context.other_qps);
  QpCounts* const counts = counts_of_thread(*qp, context);
  if (counts == nullptr || !process.lookup.insert(thread_bits | key_of(object), counts)) {
    return shared_counts(*context.other_qps);
  }
  counts->object = object;
  return *counts;
}

QpCounts& make_numbered_counts(std::uint64_t number_key, QpCounts& other) {
  const ErrnoGuard errno_guard;
  if (!register_thread()) return shared_counts(other);
  if (void* const found = process.lookup.find(thread_bits | number_key)) return *static_cast<QpCounts*>(found);
  auto* const qp = static_cast<QpRecord*>(process.lookup.find(kRecordBits | number_key));
  WrappedContext* const context =
      qp == nullptr ? nullptr : find_context(static_cast<const ibv_qp*>(qp->object)->context);
  QpCounts* const counts = context == nullptr ? nullptr : counts_of_thread(*qp, *context);
  return counts != nullptr && process.lookup.insert(thread_bits | number_key, counts) ? *counts : shared_counts(other);
}

PollCounts& make_poll_counts(ibv_cq* object) {
  const ErrnoGuard errno_guard;
  WrappedContext& context = *find_context(object->context);
  if (!register_thread()) return shared_counts(*context.other_cqs);
  if (void* const found = process.lookup.find(thread_bits | key_of(object))) return *static_cast<PollCounts*>(found);
  CqRecord* cq = find_record<CqRecord>(object);
  if (cq == nullptr) cq = adopt_cq(object, context);
  PollCounts* const counts = cq == nullptr ? nullptr : process.arena.make<PollCounts>();
  if (counts == nullptr) return shared_counts(*context.other_cqs);
  counts->poll = context.ops.poll_cq;
  counts->arm = context.ops.req_notify_cq;
  counts->number_tag = number_tag(cq->context);
  counts->unknown = context.other_qps;
  counts->cq_record = cq->number;
  counts->thread = thread_number();
  return publish_counts(*counts, key_of(object)) ? *counts : shared_counts(*context.other_cqs);
}

RecvCounts& make_recv_counts(ibv_srq* object) {
  const ErrnoGuard errno_guard;
  WrappedContext& context = *find_context(object->context);
  if (!register_thread()) return shared_counts(*context.other_srqs);
  if (void* const found = process.lookup.find(thread_bits | key_of(object))) return *static_cast<RecvCounts*>(found);
  SrqRecord* srq = find_record<SrqRecord>(object);
  if (srq == nullptr) srq = adopt_srq(object, context);
  RecvCounts* const counts = srq == nullptr ? nullptr : process.arena.make<RecvCounts>();
  if (counts == nullptr) return shared_counts(*context.other_srqs);
  counts->post = context.ops.post_srq_recv;
  counts->srq_record = srq->number;
  counts->thread = thread_number();
  return publish_counts(*counts, key_of(object)) ? *counts : shared_counts(*context.other_srqs);
}

void lock_for_fork() {
  process.control.lock();
  if (counting()) used_at_fork = process.arena.used();
}

void unlock_in_parent() {
  process.control.unlock();
}

void restart_in_child(const char* path) {
  if (counting()) {
    process.arena.copy_for_child(path, used_at_fork);
    each_record(process.arena.header(), [](const RecordHead& head) { restore(const_cast<RecordHead&>(head)); });
  }
  process.control.unlock();
}

}  // namespace verbscope::driver
