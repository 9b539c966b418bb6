// The state of counting in this process. It is global because the wrapped calls have no argument for it. It is never
// destroyed, since programs may post and poll until they exit.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "drivers_patch/arena.hpp"
#include "drivers_patch/lookup.hpp"
#include "drivers_patch/queue_memory/send_queue.hpp"
#include "wire/doorbell.hpp"

namespace verbscope::driver {

// A context whose calls are wrapped: its provider's calls, and shared counts for objects without room for their own.
struct WrappedContext {
  ContextRecord* record = nullptr;
  ibv_context_ops ops{};
  decltype(verbs_context::create_qp_ex) create_qp_ex = nullptr;
  decltype(verbs_context::create_cq_ex) create_cq_ex = nullptr;
  decltype(verbs_context::create_srq_ex) create_srq_ex = nullptr;
  bool sample_times = true;
  DoorbellRegisters registers;
  std::atomic<bool> in_use{false};  // something was posted or polled
  // Called by the counted post: the provider's call, or with --verify one that also checks the WQEs.
  decltype(ibv_context_ops::post_send) post_send = nullptr;
  ContextChecks* checks = nullptr;  // with --verify
  DirectVerbs direct;
  QpCounts* other_qps = nullptr;
  PollCounts* other_cqs = nullptr;
  RecvCounts* other_srqs = nullptr;
};

struct Process {
  Arena arena;
  Lookup lookup;
  std::mutex control;  // held by the control path, and while a record is made for an object that was not attached
  std::atomic<std::uint32_t> threads{0};
  std::uint32_t contexts = 0, qps = 0, srqs = 0, cqs = 0;
  // Queries the provider about a QP that was not attached; null: not possible.
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) = nullptr;
  // With --verify, set before any context is attached: finds the functions that return queue memory.
  DirectVerbs (*find_direct)() = nullptr;
};
extern Process process;

// Replaces a call of the provider, unless the provider does not implement it.
template <class Function>
void wrap_call(Function*& call, Function* ours) {
  if (call != nullptr) call = ours;
}

// This thread's bits in lookup keys: the top 16. 0: it has not counted yet.
extern constinit thread_local std::uint64_t thread_bits __attribute__((tls_model("initial-exec")));

// The QP that this thread posted to last. If that QP was destroyed and another has its address, its counts have no
// recent shapes, so that the post finds no match and looks up the new QP.
struct RecentQp {
  const ibv_qp* qp;
  QpCounts* counts;
};
extern constinit thread_local RecentQp recent_qp __attribute__((tls_model("initial-exec")));

// This thread's last poll if it was empty, and what the thread had posted by then. `cq` is null if the thread has
// polled completions or posted by a builder since.
struct RecentEmpty {
  const void* cq;  // ibv_cq or ibv_cq_ex
  std::uint64_t posted;
  bool again;  // the poll before it was empty, too, with nothing posted between
};
extern constinit thread_local RecentEmpty recent_empty __attribute__((tls_model("initial-exec")));

// Replace the thread's bits in the keys of records and contexts.
inline constexpr std::uint64_t kRecordBits = std::uint64_t{0xffff} << 48;
inline constexpr std::uint32_t kMaxThreads = 0xfffe;
// Set in the keys of builders, because an ibv_qp_ex often has the address of its ibv_qp.
inline constexpr std::uint64_t kBuilderBit = 1;

inline std::uint64_t key_of(const void* object) {
  return reinterpret_cast<std::uint64_t>(object);
}
// Prefix of keys by QP number, which is what completions contain. Addresses have bit 47 clear.
inline std::uint64_t number_tag(std::uint32_t context) {
  return std::uint64_t{1} << 47 | std::uint64_t{context & 0x7fffff} << 24;
}

// Stores a value that other threads may read at the same time.
inline void put(std::uint64_t& count, std::uint64_t value) {
  __atomic_store_n(&count, value, __ATOMIC_RELAXED);
}
template <class Totals>
void put_all(Totals& counts, const Totals& values) {
  const auto* const from = reinterpret_cast<const std::uint64_t*>(&values);
  auto* const to = reinterpret_cast<std::uint64_t*>(&counts);
  for (std::size_t i = 0; i < sizeof values / sizeof *from; ++i) put(to[i], from[i]);
}

// Adds to a count that only this thread writes, and other threads may read at the same time.
inline void add(std::uint64_t& count, std::uint64_t n = 1) {
  put(count, __atomic_load_n(&count, __ATOMIC_RELAXED) + n);
}

template <class Record>
Record* find_record(const void* object) {
  return static_cast<Record*>(process.lookup.find(kRecordBits | key_of(object)));
}
// The wrapped context at this address, or null.
inline WrappedContext* find_context(const ibv_context* context) {
  return static_cast<WrappedContext*>(process.lookup.find(kRecordBits | key_of(context)));
}

// Return this thread's counts for an object of a wrapped context. Make them if necessary.
QpCounts& make_qp_counts(ibv_qp* qp);
PollCounts& make_poll_counts(ibv_cq* cq);
RecvCounts& make_recv_counts(ibv_srq* srq);
// For the QP that a completion names; returns `other` if it is unknown.
QpCounts& make_numbered_counts(std::uint64_t number_key, QpCounts& other);

inline QpCounts& qp_counts(ibv_qp* qp) {
  void* const found = process.lookup.find(thread_bits | key_of(qp));
  return found != nullptr ? *static_cast<QpCounts*>(found) : make_qp_counts(qp);
}
inline PollCounts& poll_counts(ibv_cq* cq) {
  void* const found = process.lookup.find(thread_bits | key_of(cq));
  return found != nullptr ? *static_cast<PollCounts*>(found) : make_poll_counts(cq);
}
inline RecvCounts& recv_counts(ibv_srq* srq) {
  void* const found = process.lookup.find(thread_bits | key_of(srq));
  return found != nullptr ? *static_cast<RecvCounts*>(found) : make_recv_counts(srq);
}
inline QpCounts& numbered_counts(std::uint64_t number_key, QpCounts& other) {
  void* const found = process.lookup.find(thread_bits | number_key);
  return found != nullptr ? *static_cast<QpCounts*>(found) : make_numbered_counts(number_key, other);
}

// Assigns bits to this thread if it has none. False if there are too many threads.
bool register_thread();

// For programs whose threads are not system threads (fibers of a simulated machine). add_thread() returns the number of
// a new thread, or 0 if there are too many. set_thread() attributes counts to that thread from now on.
std::uint32_t add_thread();
void set_thread(std::uint32_t number);

// Restores errno at its end.
class ErrnoGuard {
 public:
  ErrnoGuard();
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;
  ~ErrnoGuard();

 private:
  int value_;
};

// The lookup keys of an object: one for its record, and one per thread for that thread's counts. Callers hold
// process.control.
inline std::uint64_t record_key(const void* object) {
  return kRecordBits | key_of(object);
}

// Erases the keys of all threads for an object.
void erase_thread_keys(std::uint64_t key);

// All keys of a QP. False if there is no room.
bool insert_keys(QpRecord& qp);
void erase_keys(const QpRecord& qp);

// Keys of a completion queue or a shared receive queue.
template <class Record>
bool insert_keys(Record& record) {
  return process.lookup.insert(record_key(record.object), &record);
}
template <class Record>
void erase_keys(const Record& record) {
  process.lookup.erase(record_key(record.object));
  erase_thread_keys(key_of(record.object));
}

// Support for processes that count and fork: the child counts from 0 into its own file, and no lock is held in it. The
// forking thread calls these around the fork, as pthread_atfork() does. Without counting they only take the lock.
//
// Locks the control path until one of the functions below.
void lock_for_fork();
void unlock_in_parent();
// `path`: the child's own file, as for start_counting().
void restart_in_child(const char* path);

}  // namespace verbscope::driver
